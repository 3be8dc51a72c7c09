#include "status/daemon_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace slurmlet::status {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Now kNow{SteadyTime{hours{100}}, WallTime{hours{495'000}}};

Report healthy_report() {
  Report report;
  report.node_name = "n1";
  report.registered = true;
  report.api_server = "https://192.0.2.10:6443";
  report.ready = {"Ready", "True", "SlurmdRunning", "slurmd is running"};
  report.slurm.record.emplace();
  report.slurm.record->name = "nid1";
  report.slurm.record->state = {"MIXED", {"DRAIN"}};
  report.slurm.record->kind = node::AnswerKind::kFullDump;
  report.slurm.answered_at = kNow.wall - seconds{12};
  report.slurm.source = "sinfo";
  report.slurm_conf.cluster_name = "alps";
  report.slurmd.liveness = node::SlurmdFacts::Liveness::kRunning;
  report.slurmd.pid = 1532;
  report.slurmd.version = "22.05.8";
  report.certificates.client_not_after = kNow.wall + hours{10};
  report.certificates.serving_not_after = kNow.wall + hours{20};
  report.certificates.serving_requests.emplace();
  report.certificates.serving_requests->pending = true;
  report.certificates.serving_requests->request_name = "node-csr-1";
  report.certificates.serving_requests->pending_since = kNow.wall - hours{1};
  report.certificates.serving_self_signed = true;
  report.metal3_uuid = "u-1";
  report.provider_id = "metal3://m/n/m";
  report.pods_rejected = 3;
  return report;
}

sync::LeaseStatus renewed(Duration ago) {
  sync::LeaseStatus lease;
  lease.renewed_steady = kNow.steady - ago;
  lease.renewed_at = kNow.wall - std::chrono::duration_cast<WallTime::duration>(ago);
  return lease;
}

DaemonStatus status_of(const Report& report, const sync::LeaseStatus& lease) {
  return daemon_status({report, lease, seconds{40}, kNow.wall - hours{2}, kNow});
}

TEST(DaemonStatusTest, ABaseStateThatIsNotConfirmedIsUnknown) {
  Report report = healthy_report();
  report.slurm.record->kind = node::AnswerKind::kOneNode;
  EXPECT_EQ(status_of(report, {}).slurm_state, "UNKNOWN+DRAIN");
}

TEST(DaemonStatusTest, AHealthyDaemon) {
  const auto status = status_of(healthy_report(), renewed(seconds{5}));
  EXPECT_TRUE(status.healthy);
  EXPECT_TRUE(status.lease_held);
  EXPECT_THAT(status.problems, IsEmpty());
  EXPECT_EQ(why_unhealthy(status), "");
  EXPECT_EQ(status.phase, "running");
  EXPECT_EQ(status.slurm_state, "MIXED+DRAIN");
  EXPECT_EQ(status.slurm_age_seconds, 12);
  EXPECT_EQ(status.serving.pending_request, "node-csr-1");
}

struct Sick {
  const char* name;
  void (*change)(Report& report, sync::LeaseStatus& lease);
  const char* what;
  const char* why;
};

TEST(DaemonStatusTest, WhatKeepsItFromBeingHealthy) {
  const std::vector<Sick> rows = {
      {"lease too old", [](Report&, sync::LeaseStatus& lease) { lease = renewed(seconds{41}); },
       "lease", "not renewed yet"},
      {"lease fails",
       [](Report&, sync::LeaseStatus& lease) {
         lease = {};
         lease.last_error = "403 Forbidden";
       },
       "lease", "403 Forbidden"},
      {"another machine's",
       [](Report& report, sync::LeaseStatus&) {
         report.registered = false;
         report.refusal = "its";
       },
       "node", "its"},
      {"API server away",
       [](Report& report, sync::LeaseStatus&) {
         report.registered = false;
         report.api_error = Error{Code::kUnavailable, "connection refused"};
       },
       "node", "connection refused"},
      {"credential refused",
       [](Report& report, sync::LeaseStatus&) { report.certificates.client_problem = "401"; },
       "credential", "401"},
      {"bootstrap waits",
       [](Report& report, sync::LeaseStatus&) {
         report.registered = false;
         report.bootstrapping = true;
         report.certificates.client_requests.emplace();
         report.certificates.client_requests->pending = true;
         report.certificates.client_requests->request_name = "node-csr-9";
       },
       "credential", "waiting for approval of node-csr-9"},
      {"bootstrap cannot ask",
       [](Report& report, sync::LeaseStatus&) {
         report.registered = false;
         report.bootstrapping = true;
         report.api_error = Error{Code::kDenied, "401 Unauthorized"};
       },
       "credential", "401 Unauthorized"}};
  for (const auto& row : rows) {
    Report report = healthy_report();
    sync::LeaseStatus lease = renewed(seconds{5});
    row.change(report, lease);
    const auto status = status_of(report, lease);
    EXPECT_FALSE(status.healthy) << row.name;
    ASSERT_THAT(status.problems, Not(IsEmpty())) << row.name;
    EXPECT_EQ(status.problems.front(), (DaemonProblem{row.what, row.why})) << row.name;
    EXPECT_THAT(to_text(status), HasSubstr(row.why)) << row.name;
  }
}

TEST(DaemonStatusTest, JsonHasItsKeysAndReadsBack) {
  const auto status = status_of(healthy_report(), renewed(seconds{5}));
  const std::string json = to_json(status);
  const auto object = nlohmann::ordered_json::parse(json);
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  EXPECT_THAT(keys,
              ElementsAre("version", "pid", "since", "node", "phase", "summary", "registered",
                          "healthy", "problems", "apiServer", "refusal", "lease", "ready", "slurm",
                          "slurmd", "clientCertificate", "servingCertificate", "metal3", "pods"));
  EXPECT_TRUE(object["refusal"].is_null());
  EXPECT_EQ(object["servingCertificate"]["pendingRequest"], "node-csr-1");
  EXPECT_EQ(object["servingCertificate"]["selfSigned"], true);
  const auto back = daemon_status_from_json(json);
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), json);
  EXPECT_EQ(to_text(*back), to_text(status));
}

TEST(DaemonStatusTest, UnknownIsNullAndNotFalse) {
  const auto object = nlohmann::json::parse(to_json(status_of(Report{}, {})));
  EXPECT_TRUE(object["slurmd"]["running"].is_null());
  EXPECT_TRUE(object["slurm"]["state"].is_null());
  EXPECT_TRUE(object["clientCertificate"]["notAfter"].is_null());
}

TEST(DaemonStatusTest, AnswersOfOthersAreNotBelieved) {
  for (const char* text : {"", "ok", "404 page not found", "[]", "{}", "null",
                           R"({"node":1,"phase":"running"})", R"({"kind":"Status"})"}) {
    EXPECT_FALSE(daemon_status_from_json(text)) << text;
  }
  const auto odd = daemon_status_from_json(
      R"({"node":"n1","phase":"running","pods":{"rejected":-1},"problems":"x","slurm":[]})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->pods_rejected, 0U);
}

}  // namespace
}  // namespace slurmlet::status
