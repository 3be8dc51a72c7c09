#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "fakes/temp_tree.h"
#include "host/listening.h"
#include "status/daemon_client.h"

namespace slurmlet::status {
namespace listening_test {

using ::testing::ElementsAre;

// proc_net(5), in the format of Linux 6.1.
constexpr const char* kTcp =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:2808 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "4711 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0701A8C0:280A 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 "
    "4712 1 0000000000000000 100 0 0 10 0\n"
    "   2: 0100007F:2808 0100007F:D5A2 01 00000000:00000000 00:00000000 00000000     0        0 "
    "4713 1 0000000000000000 20 4 30 10 -1\n"
    "garbage\n";
constexpr const char* kTcp6 =
    "   0: 00000000000000000000000000000000:280A 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000 65534        0 4714 1 0000000000000000 100 0 0 10 0\n";

TEST(ListeningTest, ReadsListenersOnly) {
  EXPECT_THAT(host::listening_sockets(kTcp),
              ElementsAre(host::ListeningSocket{10248, 0, 4711, true},
                          host::ListeningSocket{10250, 101, 4712, false}));
  EXPECT_THAT(host::listening_sockets(kTcp6),
              ElementsAre(host::ListeningSocket{10250, 65534, 4714, true}));
}

TEST(ListeningTest, NamesTheProcess) {
  fakes::TempTree proc;
  proc.file("net/tcp", kTcp).file("net/tcp6", kTcp6).file("42/comm", "kubelet\n");
  proc.symlink("socket:[4711]", "42/fd/7").symlink("/dev/null", "42/fd/0");
  const std::string root = proc.root().string();
  const auto health = host::who_listens(root, 10248, host::Reach::kLoopback);
  ASSERT_TRUE(health);
  EXPECT_EQ(health->pid, 42);
  EXPECT_EQ(health->program, "kubelet");
  EXPECT_EQ(host::to_text(*health), "kubelet (pid 42, uid 0)");
  const auto unseen = host::who_listens(root, 10250, host::Reach::kLoopback);
  ASSERT_TRUE(unseen);
  EXPECT_EQ(unseen->pid, 0);
  EXPECT_EQ(host::to_text(*unseen), "a process of uid 65534 (run as root to see it)");
  EXPECT_FALSE(host::who_listens(root, 10255, host::Reach::kAnyAddress));
  proc.remove("net/tcp6");
  EXPECT_FALSE(host::who_listens(root, 10250, host::Reach::kLoopback)) << "not on the loopback";
  EXPECT_TRUE(host::who_listens(root, 10250, host::Reach::kAnyAddress));
}

TEST(ListeningTest, NamesTheUserOfTheSocket) {
  struct Row {
    const char* tcp;
    const char* tcp6;
    std::optional<uid_t> uid;
  };
  constexpr const char* kOfRoot =
      " 0: 0100007F:2808 00000000:0000 0A 0:0 00:0 0 0 0 4711 1 0 100 0 0 10 0\n";
  constexpr const char* kOfUser =
      " 0: 0100007F:2808 00000000:0000 0A 0:0 00:0 0 1000 0 4712 1 0 100 0 0 10 0\n";
  constexpr const char* kConnected =
      " 0: 0100007F:2808 0100007F:D5A2 01 0:0 00:0 0 0 0 4713 1 0 20 4 30 10 -1\n";
  constexpr const char* kNoNumber =
      " 0: 0100007F:2808 00000000:0000 0A 0:0 00:0 0 root 0 4711 1 0 100 0 0 10 0\n";
  constexpr const char* kOfUser6 =
      " 0: 00000000000000000000000000000000:2808 00000000000000000000000000000000:0000 0A 0:0 00:0 "
      "0 1000 0 4714 1 0 100 0 0 10 0\n";
  const Row rows[] = {
      {kOfRoot, "", 0},     {kOfUser, "", 1000}, {"", kOfUser6, 1000}, {kOfRoot, kOfUser6, 0},
      {kConnected, "", {}}, {kNoNumber, "", {}}, {"", "", {}},
  };
  for (const auto& row : rows) {
    fakes::TempTree proc;
    proc.file("net/tcp", row.tcp).file("net/tcp6", row.tcp6);
    const auto socket = host::listening_socket(proc.root().string(), 10248, host::Reach::kLoopback);
    EXPECT_EQ(socket ? std::optional{socket->uid} : std::nullopt, row.uid) << row.tcp << row.tcp6;
  }
}

TEST(ListeningTest, TheDaemonMayRunAsRootOneselfOrTheOwnerOfStateDir) {
  constexpr uid_t kOther = 4242;
  EXPECT_TRUE(may_be_daemon(0, "/none"));
  EXPECT_TRUE(may_be_daemon(geteuid(), "/none"));
  EXPECT_FALSE(may_be_daemon(kOther, "/none"));
  fakes::TempTree state;
  const std::string directory = state.root().string();
  EXPECT_FALSE(may_be_daemon(kOther, directory));
  if (geteuid() == 0) {  // only root may chown
    ASSERT_EQ(chown(directory.c_str(), kOther, kOther), 0);
    EXPECT_TRUE(may_be_daemon(kOther, directory));
    EXPECT_FALSE(may_be_daemon(kOther + 1, directory));
  }
}

}  // namespace listening_test
}  // namespace slurmlet::status
