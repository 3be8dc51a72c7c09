#include "check/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace slurmlet::check {
namespace finding_test {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const Findings kAll = {{Severity::kOk, "n1", "", "", "node name"},
                       {Severity::kInfo, "not looked at", "", "", "munge"},
                       {Severity::kWarning, "9 s behind", "set it right", "", "clock"},
                       {Severity::kError, "not running", "start it", "failed", "slurmd"}};

TEST(FindingsTest, RowsNameTheSubjectAndTheFixThatNobodyBetterKnows) {
  const Findings found = run({{"munge",
                               [] {
                                 return Findings{error("away"), error("bad", "x")};
                               },
                               "start it"},
                              {"clock", [] { return Findings{}; }, "set it"},
                              {"lease", [] { return Findings{ok("held")}; }, "look"}});
  EXPECT_THAT(found, ElementsAre(Finding{Severity::kError, "away", "start it", "", "munge"},
                                 Finding{Severity::kError, "bad", "x", "", "munge"},
                                 Finding{Severity::kOk, "held", "", "", "lease"}));
}

TEST(FindingsTest, TextForPeople) {
  EXPECT_EQ(findings_text(kAll),
            "+ node name        n1\n"
            "- munge            not looked at\n"
            "! clock            9 s behind\n"
            "                   -> set it right\n"
            "x slurmd           not running: failed\n"
            "                   -> start it\n"
            "help: docs/troubleshooting.md#check-clock, #check-slurmd\n"
            "1 error, 1 warning\n");
  EXPECT_THAT(findings_text({kAll[2], kAll[3], kAll[3]}), EndsWith("\n2 errors, 1 warning\n"));
  EXPECT_EQ(findings_text({kAll[0], kAll[1]}),
            "+ node name        n1\n- munge            not looked at\nno errors\n");
  EXPECT_THAT(findings_text({kAll[2], kAll[2]}),
              EndsWith("right\nhelp: docs/troubleshooting.md#check-clock\n2 warnings\n"));
  EXPECT_THAT(findings_text({{Severity::kError, "x", "", "", "API server"},
                             {Severity::kError, "x", "", "", "slurm.conf"}}),
              HasSubstr("troubleshooting.md#check-api-server, #check-slurmconf\n"));
}

TEST(FindingsTest, JsonForPrograms) {
  const auto json = nlohmann::json::parse(findings_json(kAll, "n1"));
  EXPECT_EQ(json["node"], "n1");
  EXPECT_EQ(json["errors"], 1);
  EXPECT_EQ(json["warnings"], 1);
  ASSERT_EQ(json["findings"].size(), 4U);
  EXPECT_EQ(json["findings"][3],
            nlohmann::json::parse(R"({"subject":"slurmd","severity":"error","found":"not running",
                                      "cause":"failed","fix":"start it"})"));
  EXPECT_TRUE(json["findings"][0]["fix"].is_null());
  EXPECT_TRUE(nlohmann::json::parse(findings_json({}, ""))["node"].is_null());
}

TEST(FindingsTest, ExitCode) {
  const Finding bad_file{Severity::kError, "x", "", "", kConfiguration};
  const Finding odd_file{Severity::kWarning, "x", "", "", kConfiguration};
  for (const auto& [findings, code] :
       std::vector<std::pair<Findings, int>>{{{}, 0},
                                             {{kAll[0], kAll[1], kAll[2]}, 0},
                                             {kAll, 1},
                                             {{bad_file, kAll[3]}, 2},
                                             {{odd_file}, 0}}) {
    EXPECT_EQ(findings_exit_code(findings), code);
  }
}

}  // namespace finding_test
}  // namespace slurmlet::check
