#include "slurm/sources/source_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>
#include <future>
#include <thread>

#include "base/side_call.h"
#include "base/unique_fd.h"
#include "fakes/temp_tree.h"

namespace slurmlet::slurm {
namespace source_choice_test {

using testing::ElementsAre;

struct Case {
  const char* name;
  SourceFacts facts;
  std::vector<const char*> described;  // in order of preference
};
class SourceChoice : public testing::TestWithParam<Case> {};

constexpr const char* kRecord =
    "uses the record that slurmlet-operator writes to the Node: where the Node has one";
const std::string kSinfo = "/usr/bin/sinfo";
const std::string kUnix = "unix:/srv/r.sock";
const std::vector<std::string> kSockets{"/run/slurmrestd.socket"};

INSTANTIATE_TEST_SUITE_P(
    Cases, SourceChoice,
    testing::Values(
        Case{"cli_is_respected",
             {node::SlurmSource::kCli, kUnix, kSinfo, kSockets},
             {"queries slurmctld through sinfo (/usr/bin/sinfo): slurm.source is cli"}},
        Case{"cli_that_is_not_there_is_respected",
             {node::SlurmSource::kCli, kUnix, "", kSockets},
             {"queries slurmctld through sinfo (not installed): slurm.source is cli"}},
        Case{"rest_is_respected",
             {node::SlurmSource::kRest, kUnix, kSinfo, kSockets},
             {"queries slurmctld through slurmrestd unix:/srv/r.sock: slurm.source is rest"}},
        Case{"operator_is_respected",
             {node::SlurmSource::kOperator, kUnix, kSinfo, kSockets},
             {"uses the record that slurmlet-operator writes to the Node: slurm.source is "
              "operator"}},
        Case{
            "auto_prefers_what_is_configured",
            {{}, kUnix, kSinfo, kSockets},
            {kRecord, "queries slurmctld through slurmrestd unix:/srv/r.sock: slurm.restURL is set",
             "queries slurmctld through sinfo (/usr/bin/sinfo): sinfo is installed"}},
        Case{"auto_prefers_sinfo_to_a_socket_that_nobody_named",
             {{}, "", kSinfo, kSockets},
             {kRecord,
              "queries slurmctld through sinfo (/usr/bin/sinfo): no slurmrestd is configured",
              "queries slurmctld through slurmrestd unix:/run/slurmrestd.socket: its socket is in "
              "a standard location"}},
        Case{"auto_takes_sinfo_alone",
             {{}, "", kSinfo, {}},
             {kRecord,
              "queries slurmctld through sinfo (/usr/bin/sinfo): no slurmrestd is configured"}},
        Case{"auto_finds_a_socket",
             {{}, "", "", kSockets},
             {kRecord,
              "queries slurmctld through slurmrestd unix:/run/slurmrestd.socket: its socket is in "
              "a standard location"}},
        Case{"auto_without_anything_says_so",
             {{}, "", "", {}},
             {kRecord,
              "queries slurmctld through sinfo (not installed): slurm.restURL is not set, "
              "and slurmrestd has no socket in a standard location"}}),
    [](const auto& row) { return std::string{row.param.name}; });

TEST_P(SourceChoice, IsMadeAndExplained) {
  std::vector<std::string> described;
  for (const auto& option : choose_sources(GetParam().facts)) {
    described.push_back(describe(option));
  }
  EXPECT_THAT(described, testing::ElementsAreArray(GetParam().described));
}

TEST(FindProgram, LooksInTheDirectoryOrThePath) {
  fakes::TempTree tree;
  tree.file("a/sinfo", "", 0644).file("b/sinfo", "", 0755).dir("c/sinfo");
  const std::string root = tree.root().string();
  const std::string path = root + "/none:" + root + "/c:" + root + "/a::" + root + "/b";
  const char* before = std::getenv("PATH");
  const std::string saved = before == nullptr ? "" : before;
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(find_program("sinfo", ""), root + "/b/sinfo");
  EXPECT_EQ(find_program("sinfo", root + "/b"), root + "/b/sinfo");
  EXPECT_EQ(find_program("sinfo", root + "/none"), "");
  ::setenv("PATH", "", 1);
  EXPECT_EQ(find_program("sinfo", ""), "");
  ::setenv("PATH", saved.c_str(), 1);
}

TEST(ExistingSockets, AreSocketsOnly) {
  fakes::TempTree tree;
  tree.file("file", "");
  const std::string path = (tree.root() / "s.sock").string();
  const UniqueFd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(existing_sockets({tree.path("file").string(), path, tree.path("no").string()}),
              ElementsAre(path));
}

// They may lie on a file system that hangs.
TEST(ExistingSockets, NameTheFileThatIsLookedAt) {
  std::promise<void> release;
  SideCall<bool> look;
  ASSERT_TRUE(look.begin(
      [released = release.get_future().share()] {
        const bool none = existing_sockets({"/nonexistent/s.sock"}).empty();
        released.wait();
        return none;
      },
      SteadyTime{}));
  while (look.file() != "/nonexistent/s.sock") {
    std::this_thread::yield();
  }
  release.set_value();
  EXPECT_EQ(look.take(std::chrono::minutes{1}), true);
}

}  // namespace source_choice_test
}  // namespace slurmlet::slurm
