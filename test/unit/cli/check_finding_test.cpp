#include "cli/check/check_finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "fakes/temp_tree.h"
#include "host/listening.h"
#include "status/daemon_client.h"

namespace slurmlet::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

const Findings kAll = {{"node name", Severity::kOk, "n1"},
                       {"munge", Severity::kInfo, "not looked at"},
                       {"clock", Severity::kWarning, "9 s behind", "", "set it right"},
                       {"slurmd", Severity::kError, "not running", "failed", "start it"}};

TEST(FindingsTest, TextForPeople) {
  EXPECT_EQ(findings_text(kAll, true),
            "✔ node name        n1\n"
            "- munge            not looked at\n"
            "! clock            9 s behind\n"
            "                   → set it right\n"
            "✘ slurmd           not running: failed\n"
            "                   → start it\n"
            "1 error, 1 warning\n");
  EXPECT_EQ(findings_text({kAll[2], kAll[3], kAll[3]}, false),
            "! clock            9 s behind\n"
            "                   -> set it right\n"
            "x slurmd           not running: failed\n"
            "                   -> start it\n"
            "x slurmd           not running: failed\n"
            "                   -> start it\n"
            "2 errors, 1 warning\n");
  EXPECT_EQ(findings_text({kAll[0], kAll[1]}, false),
            "+ node name        n1\n- munge            not looked at\nno errors\n");
  EXPECT_THAT(findings_text({kAll[2], kAll[2]}, false), EndsWith("right\n2 warnings\n"));
}

TEST(FindingsTest, JsonForPrograms) {
  const auto json = nlohmann::json::parse(findings_json(kAll, "n1"));
  EXPECT_EQ(json["node"], "n1");
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["warnings"], 1);
  ASSERT_EQ(json["findings"].size(), 4U);
  EXPECT_EQ(json["findings"][3],
            nlohmann::json::parse(R"({"subject":"slurmd","severity":"error","found":"not running",
                                      "cause":"failed","fix":"start it","cure":"start it"})"));
  EXPECT_TRUE(json["findings"][0]["fix"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(findings_json({}, ""))["node"].is_null());
}

TEST(FindingsTest, ExitCode) {
  EXPECT_EQ(findings_exit_code({}), 0);
  EXPECT_EQ(findings_exit_code({kAll[0], kAll[1], kAll[2]}), 0);
  EXPECT_EQ(findings_exit_code(kAll), 1);
  EXPECT_EQ(findings_exit_code({{kSubjectConfiguration, Severity::kError, "x"}, kAll[3]}), 2);
  EXPECT_EQ(findings_exit_code({{kSubjectConfiguration, Severity::kWarning, "x"}}), 0);
}

TEST(FindingsTest, TheFirstLocaleThatIsSetCounts) {
  const auto is_utf8 = [](const char* lc_all, const char* lc_ctype, const char* lang) {
    const std::map<std::string, std::string> values{
        {"LC_ALL", lc_all}, {"LC_CTYPE", lc_ctype}, {"LANG", lang}};
    return is_utf8_locale([&](const std::string& name) { return std::optional{values.at(name)}; });
  };
  EXPECT_TRUE(is_utf8("", "", "C.UTF-8"));
  EXPECT_TRUE(is_utf8("de_DE.utf8", "", ""));
  EXPECT_FALSE(is_utf8("C", "en_US.UTF-8", "en_US.UTF-8"));
  EXPECT_TRUE(is_utf8("", "en_US.UTF-8", "C"));
  EXPECT_FALSE(is_utf8("", "", ""));
  EXPECT_FALSE(is_utf8_locale([](const std::string&) { return std::nullopt; }));
}

// proc_net(5), as Linux 6.1 prints it.
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
              ElementsAre(host::ListeningSocket{10248, 0, 4711, true, false},
                          host::ListeningSocket{10250, 101, 4712, false, false}));
  EXPECT_THAT(host::listening_sockets(kTcp6),
              ElementsAre(host::ListeningSocket{10250, 65534, 4714, true, true}));
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
  EXPECT_EQ(host::to_words(*health), "kubelet (pid 42, uid 0)");
  const auto unseen = host::who_listens(root, 10250, host::Reach::kLoopback);
  ASSERT_TRUE(unseen);
  EXPECT_EQ(unseen->pid, 0);
  EXPECT_EQ(host::to_words(*unseen), "a process of uid 65534 (run as root to see it)");
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

TEST(ListeningTest, TheDaemonIsOfRootOfOneselfOrOfTheOwnerOfStateDir) {
  constexpr uid_t kOther = 4242;
  EXPECT_TRUE(status::may_be_daemon(0, "/none"));
  EXPECT_TRUE(status::may_be_daemon(geteuid(), "/none"));
  EXPECT_FALSE(status::may_be_daemon(kOther, "/none"));
  fakes::TempTree state;
  const std::string directory = state.root().string();
  EXPECT_FALSE(status::may_be_daemon(kOther, directory));
  if (geteuid() == 0) {  // only root gives directories away
    ASSERT_EQ(chown(directory.c_str(), kOther, kOther), 0);
    EXPECT_TRUE(status::may_be_daemon(kOther, directory));
    EXPECT_FALSE(status::may_be_daemon(kOther + 1, directory));
  }
}

}  // namespace
}  // namespace slurmlet::cli
