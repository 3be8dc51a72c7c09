#include "slurm/answers/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "fixture.h"
#include "utc_test.h"

namespace slurmlet::slurm {
namespace capture_test {

using node::SlurmFailure;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class CaptureText : public UtcTest {};

const std::string kNode =
    "NodeName=n1 Arch=x86_64 CoresPerSocket=8  CPUAlloc=3 CPUEfctv=8 CPUTot=8 CPULoad=0.89 "
    "RealMemory=4096 AllocMem=100 FreeMem=21820 State=MIXED Weight=1 CfgTRES=cpu=8 AllocTRES= "
    "CurrentWatts=0 AveWatts=0\n";
const std::string kSinfo =
    "NODELIST|STATE|CPUS(A/I/O/T)|MEMORY|FREE_MEM|GRES|REASON\n"
    "n1|mixed|3/5/0/8|4096|21820|(null)|none\n";
const std::string kSlurmd =
    "Active Steps             = NONE\nSlurmd PID               = 7\n"
    "Version                  = 25.11.0\n";

// A body of slurmrestd (v0.0.44) with one node, and of `scontrol --json`.
std::string document(const std::string& plugin, const std::string& client,
                     const std::string& command) {
  return R"({"nodes":[{"name":"n1","state":["MIXED"],"cpus":8}],"meta":{"plugin":{"type":")" +
         plugin + R"(","data_parser":"data_parser\/v0.0.44"},"client":{"source":")" + client +
         R"("},"command":[)" + command +
         R"(],"slurm":{"release":"25.11.8","cluster":"lab"}},"errors":[],"warnings":[]})";
}
const std::string kRest = document("openapi\\/slurmctld", "unix:\\/run\\/r.sock", "");

struct Case {
  std::string text;
  const char* source;
};

TEST_F(CaptureText, RecognisesEveryAnswerByItsContent) {
  const std::vector<Case> cases{
      {kNode, "scontrol show node"},
      {kSinfo, "sinfo"},
      {kSlurmd, "scontrol show slurmd"},
      {kRest, "slurmrestd"},
      {"\n" + document("", "", R"("show","node")"), "scontrol show node --json"},
      {document("", "localhost:6820(fd:9)", ""), "slurmrestd"},
      {document("", "", R"("sinfo","--json")"), "sinfo --json"},
      {"sinfo: error: s_p_parse_file: cannot stat file /x\n", "error message"},
      {"slurm_load_partitions: Unable to contact slurm controller (connect failure)\n",
       "error message"},
      {"Node n1 not found\n", "scontrol show node"},
      {"", "unknown"},
      {"idle\n", "unknown"},
      {"n1|mixed|mix|3/5/0/8|4096|21820|(null)|none|Unknown|Unknown|0.89|batch\n", "unknown"},
      {"Slurmctld(primary) at vm is UP\n", "unknown"},
      {"<!DOCTYPE html><html><body>Log in</body></html>", "unknown"},
      {"PID      JOBID    STEPID   LOCALID GLOBALID\n", "unknown"},
      {std::string("\0\1\2", 3), "unknown"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(parse_capture(c.text).source, c.source) << c.text;
  }
}

TEST_F(CaptureText, LinesOfAShellInFrontAreNamed) {
  for (const auto& bare : {kNode, kSinfo, kRest, "HTTP/1.1 200 OK\r\n\r\n" + kRest}) {
    const auto expected = parse_capture(bare);
    ASSERT_EQ(expected.nodes.size(), 1U) << bare;
    const auto capture = parse_capture("root@n1:~# sinfo; scontrol show node n1\r\n" + bare);
    EXPECT_EQ(capture.source, expected.source) << bare;
    EXPECT_EQ(capture.nodes, expected.nodes) << bare;
    EXPECT_EQ(capture.http_status, expected.http_status) << bare;
    EXPECT_THAT(capture.not_understood, Contains(HasSubstr("root@n1:~# sinfo"))) << bare;
  }
}

TEST_F(CaptureText, WhatIsNotRecognisedSaysWhatWouldBe) {
  for (const char* text : {"idle\n", "n1|idle|0/8/0/8\n", "n1 1 debug idle\n", "hello\n"}) {
    const auto capture = parse_capture(text);
    EXPECT_EQ(capture.source, "unknown");
    ASSERT_TRUE(capture.failure) << text;
    for (const char* command :
         {"scontrol show node NAME", "sinfo -N -n NAME -o", "no -h", "curl -si"}) {
      EXPECT_THAT(capture.failure->detail, HasSubstr(command)) << text;
    }
    EXPECT_THAT(capture.not_understood, SizeIs(1)) << text;
  }
}

// Made by test/fixtures/slurm/own-query/record.sh.
TEST_F(CaptureText, ReadsTheDaemonsOwnQuery) {
  for (const char* release : {"22.05", "24.11"}) {
    const auto capture = parse_capture(fixture(std::string{"own-query/"} + release + ".out"));
    EXPECT_EQ(capture.source, "sinfo");
    EXPECT_THAT(capture.not_understood, IsEmpty()) << release;
    ASSERT_THAT(capture.nodes, SizeIs(1)) << release;
    const auto& record = capture.nodes.front();
    EXPECT_EQ(record.name, "n1");
    EXPECT_TRUE(record.state.has("DRAIN"));
    EXPECT_THAT(record.active_features, ElementsAre("bios_b")) << release;
    EXPECT_EQ(record.comment, "rack 7 | see\nState=IDLE") << release;
    EXPECT_EQ(record.reason, "disk | swap\nn1|normal|idle") << release;
    EXPECT_EQ(record.reservation, std::string{release} == "22.05" ? "" : "repair") << release;
  }
}

TEST_F(CaptureText, ASlurmdThatDoesNotAnswerIsNoFailureOfSlurmctld) {
  const auto capture = parse_capture("slurm_load_slurmd_status: Connection refused\n");
  EXPECT_EQ(capture.source, "error message");
  EXPECT_EQ(capture.slurmd_failure, "Connection refused");
  EXPECT_FALSE(capture.failure);
}

TEST_F(CaptureText, SaysWhoAnswered) {
  const auto rest =
      parse_capture("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + kRest);
  EXPECT_EQ(rest.http_status, 200);
  EXPECT_EQ(rest.api_version, "v0.0.44");
  EXPECT_EQ(rest.slurm_version, "25.11.8");
  EXPECT_EQ(rest.cluster, "lab");
  ASSERT_THAT(rest.nodes, SizeIs(1));
  EXPECT_EQ(rest.nodes[0].state.raw(), "MIXED");
  const auto slurmd = parse_capture(kSlurmd);
  ASSERT_TRUE(slurmd.slurmd);
  EXPECT_EQ(slurmd.slurmd->version, "25.11.0");
  EXPECT_EQ(slurmd.slurm_version, "25.11.0");
}

struct HeadCase {
  const char* head;
  int status;
};

TEST_F(CaptureText, ReadsEveryFormOfHttpHead) {
  const std::vector<HeadCase> cases{
      {"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", 200},
      {"HTTP/1.0 200 OK\n\n", 200},
      {"HTTP/2 200 \r\ncontent-type: application/json\r\n\r\n", 200},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200},
      {"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n", 200},
      {"HTTP/1.1 301 Moved\r\nLocation: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", 200},
  };
  for (const auto& c : cases) {
    const auto capture = parse_capture(c.head + kRest);
    EXPECT_EQ(capture.http_status, c.status) << c.head;
    EXPECT_EQ(capture.source, "slurmrestd") << c.head;
    EXPECT_THAT(capture.nodes, SizeIs(1)) << c.head;
  }
}

struct HttpFailure {
  const char* text;
  const char* source;
  int status;
  SlurmFailure cause;
};

TEST_F(CaptureText, HttpAnswersWithoutANodeAreFailures) {
  const std::vector<HttpFailure> cases{
      {"HTTP/1.1 401 UNAUTHORIZED\r\n\r\nAuthentication failure", "slurmrestd", 401,
       SlurmFailure::kTokenRefused},
      {"HTTP/1.1 404 NOT FOUND\r\n\r\nUnable find requested URL. Please view /openapi/v3 for API "
       "reference.",
       "slurmrestd", 404, SlurmFailure::kRestUnavailable},
      {"HTTP/1.1 204 NO CONTENT\r\nConnection: Close\r\n\r\n", "unknown", 204,
       SlurmFailure::kGarbage},
      {"HTTP/1.1 200 OK\r\n\r\nslurmd index of endpoints:\n  '/readyz': x\n", "unknown", 200,
       SlurmFailure::kGarbage},
      {"HTTP/1.1 200 OK\r\nContent-Length: 700", "unknown", 200, SlurmFailure::kGarbage},
      {"HTTP/", "unknown", 0, SlurmFailure::kGarbage},
  };
  for (const auto& c : cases) {
    const auto capture = parse_capture(c.text);
    EXPECT_EQ(capture.source, c.source) << c.text;
    EXPECT_EQ(capture.http_status, c.status) << c.text;
    ASSERT_TRUE(capture.failure) << c.text;
    EXPECT_EQ(capture.failure->cause, c.cause) << c.text;
    EXPECT_THAT(capture.nodes, IsEmpty()) << c.text;
  }
  const auto page = parse_capture("HTTP/1.1 502 Bad Gateway\r\n\r\n<html>nginx</html>\n");
  EXPECT_EQ(page.source, "unknown");
  EXPECT_TRUE(page.failure);
}

struct MessageCase {
  const char* text;
  SlurmFailure cause;
};

TEST_F(CaptureText, MessagesOfTheCommandsTellTheCause) {
  const std::vector<MessageCase> cases{
      {"slurm_load_node error: Unable to contact slurm controller (connect failure)\n",
       SlurmFailure::kControllerUnreachable},
      {"scontrol: error: If munged is up, restart with --num-threads=10\nscontrol: error: Munge "
       "encode failed: Failed to access \"/run/munge.socket\": No such file or directory\n",
       SlurmFailure::kMungeUnavailable},
      {"slurm_load_node error: Access/permission denied\n", SlurmFailure::kPermissionDenied},
      {"scontrol_reboot_nodes error:Permission denied\n", SlurmFailure::kPermissionDenied},
      {"[2026-11-20T23:08:38.621] error: Unable to contact slurm controller (connect failure)\n",
       SlurmFailure::kControllerUnreachable},
  };
  for (const auto& c : cases) {
    const auto capture = parse_capture(c.text);
    EXPECT_EQ(capture.source, "error message") << c.text;
    ASSERT_TRUE(capture.failure) << c.text;
    EXPECT_EQ(capture.failure->cause, c.cause) << c.text;
    EXPECT_THAT(capture.failure->detail, testing::Not(HasSubstr("\n")));
  }
}

TEST_F(CaptureText, AnAnswerBehindMessagesCounts) {
  const auto capture =
      parse_capture("sinfo: RPC rate limited 1 time(s). Sleeping then trying again.\n" + kSinfo);
  EXPECT_EQ(capture.source, "sinfo");
  EXPECT_FALSE(capture.failure);
  EXPECT_THAT(capture.nodes, SizeIs(1));
  EXPECT_THAT(capture.not_understood, ElementsAre(HasSubstr("rate limited")));
}

TEST_F(CaptureText, ADocumentBehindOtherLinesIsFound) {
  const auto capture = parse_capture("  % Total    % Received\n100   700  100\n" + kRest);
  EXPECT_EQ(capture.source, "slurmrestd");
  EXPECT_THAT(capture.nodes, SizeIs(1));
  EXPECT_THAT(capture.not_understood, SizeIs(2));
}

TEST_F(CaptureText, AnEmptyCaptureIsNotTakenForAnAbsentNode) {
  for (const char* text : {"", "\n\n", " \r\n"}) {
    const auto capture = parse_capture(text);
    EXPECT_EQ(capture.source, "unknown");
    ASSERT_TRUE(capture.failure);
    EXPECT_EQ(capture.failure->cause, SlurmFailure::kGarbage);
    EXPECT_THAT(capture.failure->detail, HasSubstr("the capture is empty"));
  }
  const auto headings = parse_capture("NODELIST   NODES PARTITION STATE\n");
  EXPECT_EQ(headings.source, "sinfo");
  ASSERT_TRUE(headings.failure);
  EXPECT_EQ(headings.failure->cause, SlurmFailure::kNotInSlurm);
}

TEST_F(CaptureText, TextThatIsNoUtf8BecomesUtf8) {
  const auto capture = parse_capture("NODELIST|STATE|REASON\nn1|down|bad \xFF disk\n\xC3\x28\n");
  ASSERT_THAT(capture.nodes, SizeIs(1));
  EXPECT_THAT(capture.nodes[0].reason, testing::StartsWith("bad \xEF\xBF\xBD disk"));
  EXPECT_THAT(parse_capture("\xFF\xFE\xFD").not_understood,
              ElementsAre("\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST_F(CaptureText, AnyAmountOfGarbageIsReadInLinearTime) {
  // Quadratic work on these sizes would take minutes; a sanitizer makes rows slow.
  const auto size_of = [](const std::string& part) {
    return part.size() == 1 && part != "\n" && part != "|" ? 1'000'000U : 50'000U;
  };
  for (const std::string part : {"x",
                                 "\n",
                                 "|",
                                 " ",
                                 "[",
                                 "(",
                                 "{",
                                 "\r",
                                 "\x1B[",
                                 "idle\n",
                                 "n1 idle\n",
                                 "a|idle|0/8/0/8\n",
                                 "NodeName=n1 Arch=x CPUAlloc=1 Foo=bar [a@b] Comment=x\n",
                                 "Reason=x [a@1] ",
                                 "gpu:1,",
                                 "HTTP/1.1 100 C\n\n",
                                 "sinfo: error: x\n",
                                 "\"show\"",
                                 "<html>",
                                 "\xFF"}) {
    std::string text;
    while (text.size() < size_of(part)) {
      text += part;
    }
    const auto start = std::chrono::steady_clock::now();
    const auto capture = parse_capture(text);
    const auto took = std::chrono::steady_clock::now() - start;
    EXPECT_LE(capture.not_understood.size(), 101U) << part;
    EXPECT_LT(took, std::chrono::seconds{60}) << part;
  }
}

TEST_F(CaptureText, EveryPrefixOfEveryFormIsReadWithoutInventingANode) {
  for (const auto& text : {kNode, kSinfo, kRest, "HTTP/1.1 200 OK\r\n\r\n" + kRest}) {
    for (std::size_t size = 0; size < text.size(); ++size) {
      const auto capture = parse_capture(text.substr(0, size));
      for (const auto& node : capture.nodes) {
        EXPECT_TRUE(node.name == "n1" || node.name.empty()) << text.substr(0, size);
        EXPECT_TRUE(node.state.base == "MIXED" || node.state.base.empty()) << text.substr(0, size);
      }
      EXPECT_TRUE(capture.failure || !capture.nodes.empty()) << text.substr(0, size);
    }
  }
}

TEST(CaptureTest, AStatusThatIsNoneIsNone) {
  for (const char* status : {"-200", "7", "x", ""}) {
    EXPECT_EQ(
        parse_capture(std::string{"HTTP/1.1 "} + status + " OK\n\n{\"nodes\":[]}").http_status, 0)
        << status;
  }
}

}  // namespace capture_test
}  // namespace slurmlet::slurm
