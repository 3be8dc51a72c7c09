#include "operator/nodes/node_reports.h"

#include <gtest/gtest.h>

#include <memory>

#include "fakes/fake_api.h"
#include "operator/fake_slurm.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::op {
namespace node_reports_test {

// Where a Slurm node has no Node, only the log says it.
TEST(NodeReports, WhatIsNotDoneIsLoggedOnceForASlurmNodeWithoutANode) {
  fakes::FakeEventApi event_api;
  sync::EventSink events{event_api, "head1", [] { return 0.5; }};
  FakeSlurm slurm;
  const SiteNodes nodes{"c"};
  const DumpedNodes dump{{{}, {}, "c"},
                         std::make_unique<slurm::ScontrolDump>(
                             slurm::ClientSettings{}, std::make_unique<FakeSlurmRunner>(slurm)),
                         [] { return 0.5; }};
  NodeReports reports{events, nodes, dump, false};
  const auto lines = [&](const char* failure) {
    ::testing::internal::CaptureStderr();
    reports.changes({{{"n1", DrainAction::kDrain, "r"}, failure}}, {});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_NE(lines("Invalid user id"), "");
  EXPECT_EQ(lines("Invalid user id"), "");
  EXPECT_NE(lines("Unable to contact slurm controller"), "");
  EXPECT_NE(lines(""), "") << "done";
  EXPECT_NE(lines(""), "") << "again";
}

}  // namespace node_reports_test
}  // namespace slurmlet::op
