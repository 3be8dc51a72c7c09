#include "slurm/local/slurm_users.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>

#include "fakes/temp_tree.h"
#include "fakes/tracer.h"

namespace slurmlet::slurm {
namespace {

constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/bash\n"
    "slurm2:x:7:7::/:/bin/sh\n"
    "slurm:x:64030:64031::/nonexistent:/usr/sbin/nologin\n"
    "broken:x:many:1::/:\n"
    "short:x:5\n";

TEST(SlurmUsers, AreReadFromPasswd) {
  EXPECT_EQ(account_in(kPasswd, "slurm"), (Account{64030, 64031}));
  for (const char* name : {"slur", "broken", "short", "", "nobody-here"}) {
    EXPECT_EQ(account_in(kPasswd, name), std::nullopt) << name;
  }
}

KnownAccounts::Answer ready(std::optional<Account> account) {
  std::promise<std::optional<Account>> promise;
  promise.set_value(account);
  return promise.get_future();
}

// Not found, by whatever cause, lasts for seconds; found lasts until there is another answer.
TEST(SlurmUsers, ANameServiceThatIsAwayForgetsNobody) {
  using std::chrono::seconds;
  const Account slurm{64030, 64031};
  const Account moved{7, 7};
  std::optional<Account> answer;
  int asked = 0;
  KnownAccounts known{[&](const std::string& name) {
    EXPECT_EQ(name, "slurm");
    ++asked;
    return ready(answer);
  }};
  const struct {
    int at;
    std::optional<Account> answer;
    std::optional<Account> found;
    int asked;
  } rows[] = {
      {1000, std::nullopt, std::nullopt, 1},
      {1010, slurm, std::nullopt, 1},
      {1030, slurm, slurm, 2},
      {1320, std::nullopt, slurm, 2},
      {1330, std::nullopt, slurm, 3},
      {1360, moved, moved, 4},
  };
  for (const auto& row : rows) {
    answer = row.answer;
    EXPECT_EQ(known.find("slurm", SteadyTime{seconds{row.at}}), row.found) << row.at;
    EXPECT_EQ(asked, row.asked) << row.at;
  }
}

// The first lookup is waited for, and no other.
TEST(SlurmUsers, ANameServiceThatHangsHoldsNobodyUp) {
  using std::chrono::seconds;
  const Account slurm{64030, 64031};
  const Account moved{7, 7};
  std::promise<std::optional<Account>> hangs;
  int asked = 0;
  KnownAccounts known{
      [&](const std::string&) { return ++asked == 1 ? ready(slurm) : hangs.get_future(); }};
  EXPECT_EQ(known.find("slurm", SteadyTime{seconds{1000}}), slurm);
  for (const int at : {1300, 1400, 9000}) {
    EXPECT_EQ(known.find("slurm", SteadyTime{seconds{at}}), slurm) << at;
    EXPECT_EQ(asked, 2) << "one at a time";
  }
  hangs.set_value(moved);
  EXPECT_EQ(known.find("slurm", SteadyTime{seconds{9001}}), moved);
  EXPECT_EQ(known.find("slurm", SteadyTime{seconds{9300}}), moved);
  EXPECT_EQ(asked, 2) << "five minutes from the answer on";
}

// Each try would leave one more getent and one more thread.
TEST(SlurmUsers, WhileOneGetentCannotBeEndedThereIsNoOther) {
  fakes::TempTree tree;
  const std::string fifo = tree.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  NameService service{{"sh", "-c", "echo $$ >\"$0\"; exec sleep 1000", fifo},
                      std::chrono::seconds{2}};
  auto first = service.look_up("slurm");
  int pid = 0;
  std::ifstream{fifo} >> pid;
  ASSERT_GT(pid, 0);
  fakes::Tracer tracer{pid};
  if (!tracer.traces()) {
    GTEST_SKIP() << "ptrace is not allowed here";
  }
  EXPECT_EQ(first.get(), std::nullopt);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(service.look_up("slurm").get(), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{1}) << "started nothing";
  tracer.kill();
}

TEST(SlurmUsers, SlurmUserMayBeANumber) {
  const TrustedUsers root;
  EXPECT_EQ(with_slurm_user(root, "root"), root);
  EXPECT_EQ(with_slurm_user(root, ""), root);
  EXPECT_EQ(with_slurm_user(root, "4711"), (TrustedUsers{{0, 4711}, {0}}));
  EXPECT_EQ(with_slurm_user(root, "65534"), root) << "users of other namespaces show with it";
  EXPECT_EQ(with_slurm_user(root, "no-such-account-here"), root);
}

}  // namespace
}  // namespace slurmlet::slurm
