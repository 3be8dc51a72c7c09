#include "status/daemon_status.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/rfc3339.h"

namespace slurmlet::status {
namespace daemon_status_test {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const Now kNow{SteadyTime{hours{100}}, WallTime{hours{495'000}}};

Report healthy_report() {
  Report report;
  report.node_name = "n1";
  report.registered = true;
  report.api_server = "https://192.0.2.10:6443";
  report.ready = {"Ready", "True", "SlurmdRunning", "slurmd is running"};
  report.facts.slurm.record.emplace();
  report.facts.slurm.record->name = "nid1";
  report.facts.slurm.record->state = {"MIXED", {"DRAIN"}};
  report.facts.slurm.answered_at = kNow.wall - seconds{12};
  report.facts.slurm.source = "scontrol";
  report.facts.slurm_conf.cluster_name = "alps";
  report.facts.slurmd.liveness = node::SlurmdFacts::Liveness::kRunning;
  report.facts.slurmd.pid = 1532;
  report.facts.slurmd.version = "22.05.8";
  report.certificates.client_not_after = kNow.wall + hours{10};
  report.certificates.serving_not_after = kNow.wall + hours{20};
  report.certificates.serving_requests.emplace();
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

std::string json_of(const Report& report, const sync::LeaseStatus& lease,
                    const std::optional<EndpointState>& endpoint = {}) {
  return daemon_status_json({report, lease, seconds{40}, kNow.wall - hours{2}, kNow, endpoint});
}

DaemonStatus status_of(const Report& report, const sync::LeaseStatus& lease,
                       const std::optional<EndpointState>& endpoint = {}) {
  auto status = read_daemon_status(json_of(report, lease, endpoint));
  EXPECT_TRUE(status);
  return status ? *status : DaemonStatus{};
}

TEST(DaemonStatusTest, AHealthyDaemon) {
  const auto status = status_of(healthy_report(), renewed(seconds{5}));
  EXPECT_TRUE(status.healthy);
  EXPECT_TRUE(status.registered);
  EXPECT_TRUE(status.lease_held);
  EXPECT_EQ(status.problem, "");
  EXPECT_EQ(status.node, "n1");
  EXPECT_EQ(status.phase, "running");
  EXPECT_EQ(status.pid, getpid());
  EXPECT_EQ(status.serving_request, "node-csr-1");
}

TEST(DaemonStatusTest, TextForPeople) {
  Report report = healthy_report();
  const std::string since = rfc3339(kNow.wall - hours{2});
  const std::string text = status_of(report, renewed(seconds{5})).text;
  EXPECT_THAT(text, StartsWith("n1: "));
  EXPECT_THAT(
      text,
      EndsWith(fmt::format(
          ", pid {}, since {}\n"
          "  API server         https://192.0.2.10:6443\n"
          "  node               registered\n"
          "  lease              held, renewed {}\n"
          "  Ready              True (SlurmdRunning): slurmd is running\n"
          "  Slurm              nid1 is MIXED+DRAIN in cluster alps, by scontrol 12 s ago, "
          "queried every 60 s\n"
          "  slurmd             running, pid 1532, 22.05.8\n"
          "  client cert        valid until {}\n"
          "  serving cert       node-csr-1 is waiting for approval: kubectl certificate approve "
          "node-csr-1 (a self-signed one is used until then)\n"
          "  metal3 uuid        u-1\n"
          "  providerID         metal3://m/n/m\n"
          "  pods               3 rejected, 0 removed, 0 waiting\n",
          getpid(), since, rfc3339(kNow.wall - seconds{5}), rfc3339(kNow.wall + hours{10}))));
  report.certificates.serving_requests.reset();
  report.facts.slurm.failure = node::SlurmFailure::kTimeout;
  report.facts.slurm.failure_detail = "timed out";
  report.facts.slurm.answered_at = kNow.wall - seconds{300};
  report.facts.slurmd.liveness = node::SlurmdFacts::Liveness::kAbsent;
  const std::string worse = status_of(report, {}).text;
  EXPECT_THAT(
      worse,
      HasSubstr("by scontrol 5 min ago, queried every 60 s; the last query failed: timed out\n"));
  EXPECT_THAT(worse, HasSubstr("serving cert       self-signed\n"));
  EXPECT_THAT(worse, HasSubstr("slurmd             not running\n"));
  EXPECT_THAT(worse, Not(HasSubstr("endpoint")));
}

TEST(DaemonStatusTest, TheEndpointThatListensOrDoesNot) {
  const auto text_of = [](const EndpointState& state) {
    return status_of(healthy_report(), renewed(seconds{5}), state).text;
  };
  EXPECT_THAT(text_of({10250, true}), HasSubstr("endpoint           port 10250\n"));
  EXPECT_THAT(text_of({10250, false}),
              HasSubstr("endpoint           does not listen on port 10250; the log says why\n"));
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
         report.block_reason = "its";
       },
       "node", "its"},
      {"API server away",
       [](Report& report, sync::LeaseStatus&) {
         report.registered = false;
         report.api_error = Error{Code::kUnavailable, "connection refused"};
       },
       "node", "connection refused"},
      {"no write succeeds for as long as a lease lasts",
       [](Report& report, sync::LeaseStatus&) {
         report.api_error = Error{Code::kInvalid, "422 Unprocessable Entity"};
         report.api_error_since = kNow.steady - seconds{40};
       },
       "node", "not written: 422 Unprocessable Entity"},
      {"it is kept otherwise",
       [](Report& r, sync::LeaseStatus&) { r.node_drift = "spec.providerID is rejected"; }, "node",
       "spec.providerID is rejected"},
      {"credential rejected",
       [](Report& report, sync::LeaseStatus&) { report.certificates.client_problem = "401"; },
       "credential", "401"},
      {"bootstrap waits",
       [](Report& report, sync::LeaseStatus&) {
         report.registered = false;
         report.bootstrapping = true;
         report.certificates.client_requests.emplace();
         report.certificates.client_requests->pending_since = WallTime{};
         report.certificates.client_requests->request_name = "node-csr-9";
       },
       "credential", "waiting for approval of node-csr-9"},
      {"bootstrap cannot reach the API server",
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
    EXPECT_EQ(status.problem, row.why) << row.name;
    EXPECT_THAT(status.text, HasSubstr(fmt::format("{}: {}", row.what, row.why))) << row.name;
  }
}

// An API server that restarts is unavailable for seconds.
TEST(DaemonStatusTest, AWriteThatFailedJustNowIsNoProblem) {
  Report report = healthy_report();
  report.api_error = Error{Code::kUnavailable, "connection refused"};
  report.api_error_since = kNow.steady - seconds{39};
  EXPECT_TRUE(status_of(report, renewed(seconds{5})).healthy);
}

TEST(DaemonStatusTest, JsonHasItsKeys) {
  const auto status = status_of(healthy_report(), renewed(seconds{5}));
  const auto object = nlohmann::ordered_json::parse(status.json);
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  EXPECT_THAT(keys, ElementsAre("version", "pid", "since", "node", "phase", "summary", "registered",
                                "healthy", "problems", "apiServer", "refusal", "lease", "ready",
                                "slurm", "slurmd", "clientCertificate", "servingCertificate",
                                "endpoint", "metal3", "pods"));
  EXPECT_TRUE(object["refusal"].is_null());
  EXPECT_TRUE(object["endpoint"].is_null());
  EXPECT_EQ(object["servingCertificate"]["pendingRequest"], "node-csr-1");
  EXPECT_EQ(object["servingCertificate"]["selfSigned"], true);
}

TEST(DaemonStatusTest, UnknownIsNullAndNotFalse) {
  const auto object = nlohmann::json::parse(json_of(Report{}, {}));
  EXPECT_TRUE(object["slurmd"]["running"].is_null());
  EXPECT_TRUE(object["slurm"]["state"].is_null());
  EXPECT_TRUE(object["clientCertificate"]["notAfter"].is_null());
}

TEST(DaemonStatusTest, RejectsAnswersOfOtherPrograms) {
  for (const char* text : {"", "ok", "404 page not found", "[]", "{}", "null",
                           R"({"node":1,"phase":"running"})", R"({"kind":"Status"})"}) {
    EXPECT_FALSE(read_daemon_status(text)) << text;
  }
  const auto odd = read_daemon_status(
      R"({"node":"n1","phase":"running","pods":{"rejected":"many"},"problems":"x","slurm":[]})");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->problem, "");
  EXPECT_FALSE(odd->healthy);
  EXPECT_THAT(odd->text, HasSubstr("0 rejected"));
  EXPECT_THAT(odd->text, Not(HasSubstr("problem")));
}

}  // namespace daemon_status_test
}  // namespace slurmlet::status
