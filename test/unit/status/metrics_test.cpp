#include "status/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace slurmlet::status {
namespace metrics_test {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Not;

const Now kNow{SteadyTime{hours{100}}, WallTime{hours{500'000}}};

Report full_report() {
  Report report;
  report.node_name = "n1";
  report.registered = true;
  report.facts.slurmd.liveness = node::SlurmdFacts::Liveness::kRunning;
  report.facts.slurm.record.emplace();
  report.facts.slurm.record->state = {"MIXED", {"DRAIN"}};
  report.facts.slurm.record->cpus = 64;
  report.facts.slurm.record->allocated_cpus = 48;
  report.facts.slurm.record->allocated_memory_mib = 512;
  report.facts.slurm.record->real_memory_mib = 1024;
  report.facts.slurm.record->gres = {{"gpu", "a100", 4}, {"shard", "", 8}};
  report.facts.slurm.record->gres_used = {{"gpu", "a100", 3}};
  report.facts.slurm.answered_at = kNow.wall - seconds{30};
  report.facts.jobs = node::LocalJobs{2, std::nullopt};
  report.slurmctld.queries = 7;
  report.slurmctld.answers = 5;
  report.slurmctld.failures_by_cause[node::SlurmFailure::kTimeout] = 2;
  report.slurmctld.answer_lasts = std::chrono::seconds{330};
  report.slurmctld.last_took = std::chrono::milliseconds{250};
  report.facts.slurm.source = "scontrol";
  report.pods_unreadable = 2;
  report.pods_seen = false;
  report.certificates.client_not_after = kNow.wall + hours{10};
  report.certificates.client_requests.emplace();
  report.certificates.client_requests->renewals = 2;
  report.certificates.serving_not_after = kNow.wall + hours{20};
  report.certificates.serving_requests.emplace();
  report.certificates.serving_requests->pending_since = WallTime{};
  report.certificates.serving_self_signed = true;
  return report;
}

// "name{a=b}" → value
std::map<std::string, double> values(const Report& report, const EndpointCounters& endpoint = {}) {
  const kube::RequestCounter requests;
  const auto snapshot = make_snapshot(report, {}, requests, endpoint, kNow, seconds{40});
  std::map<std::string, double> out;
  for (const auto& family : snapshot.metrics) {
    for (const auto& sample : family.samples) {
      std::string key = family.name;
      for (const auto& [name, value] : sample.labels) {
        key += "{" + name + "=" + value + "}";
      }
      EXPECT_TRUE(out.emplace(key, sample.value).second) << key << " is there twice";
    }
  }
  return out;
}

std::set<std::string> names(const std::map<std::string, double>& of) {
  std::set<std::string> out;
  for (const auto& [key, value] : of) {
    out.insert(key.substr(0, key.find('{')));
  }
  return out;
}

struct Row {
  const char* key;
  double value;
};

TEST(MetricsTest, ShowTheReport) {
  const auto all = values(full_report());
  for (const Row& row : {
           Row{"slurmlet_node_registered", 1},
           Row{"slurmlet_pods_unreadable", 2},
           Row{"slurmlet_pod_watch_up", 0},
           Row{"slurmlet_node_gone_with_machine", 0},
           Row{"slurmlet_slurmd_up", 1},
           Row{"slurmlet_slurm_state_age_seconds", 30},
           Row{"slurmlet_slurm_state_max_age_seconds", 330},
           Row{"slurmlet_slurmctld_queries_total", 7},
           Row{"slurmlet_slurmctld_answers_total", 5},
           Row{"slurmlet_slurmctld_failures_total{cause=timeout}", 2},
           Row{"slurmlet_slurmctld_last_query_seconds", 0.25},
           Row{"slurmlet_slurm_source_info{source=scontrol}", 1},
           Row{"slurmlet_slurm_node_state{state=mixed}", 1},
           Row{"slurmlet_slurm_node_state{state=drain}", 1},
           Row{"slurmlet_slurm_cpus{kind=total}", 64},
           Row{"slurmlet_slurm_cpus{kind=allocated}", 48},
           Row{"slurmlet_slurm_memory_bytes{kind=total}", 1024.0 * 1024 * 1024},
           Row{"slurmlet_slurm_memory_bytes{kind=allocated}", 512.0 * 1024 * 1024},
           Row{"slurmlet_slurm_gpus{kind=total}", 4},
           Row{"slurmlet_slurm_gpus{kind=allocated}", 3},
           Row{"slurmlet_certificate_expiration_timestamp_seconds{certificate=client}",
               (500'000.0 + 10) * 3600},
           Row{"slurmlet_certificate_request_pending{certificate=serving}", 1},
           Row{"slurmlet_certificate_request_pending{certificate=client}", 0},
           Row{"slurmlet_certificate_renewals_total{certificate=client}", 2},
           Row{"slurmlet_serving_certificate_self_signed", 1},
       }) {
    const auto found = all.find(row.key);
    ASSERT_NE(found, all.end()) << row.key;
    EXPECT_DOUBLE_EQ(found->second, row.value) << row.key;
  }
}

TEST(MetricsTest, OmitUnknownValues) {
  Report report = full_report();
  report.facts.slurm.record->allocated_memory_mib.reset();
  EXPECT_FALSE(values(report).contains("slurmlet_slurm_memory_bytes{kind=allocated}"));
  report.facts.slurm.stale = true;
  EXPECT_THAT(names(values(report)), Not(Contains("slurmlet_slurm_node_state")));
  const auto nothing = names(values(Report{}));
  EXPECT_THAT(nothing, Not(Contains("slurmlet_slurm_state_age_seconds")));
  EXPECT_THAT(nothing, Not(Contains("slurmlet_slurm_state_max_age_seconds")));
  EXPECT_THAT(nothing, Not(Contains("slurmlet_pod_watch_up")));
  EXPECT_THAT(nothing, Not(Contains("slurmlet_slurm_source_info")));
  EXPECT_THAT(nothing, Not(Contains("slurmlet_slurmctld_last_query_seconds")));
  EXPECT_THAT(nothing, Not(Contains("slurmlet_certificate_expiration_timestamp_seconds")));
}

TEST(MetricsTest, TheProcessShowsItself) {
  const auto all = values(Report{});
  for (const char* name : {"process_cpu_seconds_total", "process_resident_memory_bytes",
                           "process_virtual_memory_bytes", "process_open_fds", "process_max_fds",
                           "process_start_time_seconds", "process_threads"}) {
    ASSERT_TRUE(all.contains(name)) << name;
    EXPECT_GT(all.at(name), 0) << name;
  }
}

TEST(MetricsTest, TheEndpointCounts) {
  EndpointCounters endpoint;
  auto& server = endpoint.server.emplace();
  server.answers[403] = 5;
  server.open = 2;
  server.timed_out = 3;
  server.turned_away = 6;
  server.evicted = 7;
  server.handshakes_delayed = 8;
  server.listening = true;
  endpoint.health.emplace().bind_failures = 9;
  endpoint.gate.token_reviews = 4;
  const auto all = values(Report{}, endpoint);
  EXPECT_EQ(all.at("slurmlet_endpoint_requests_total{code=403}"), 5);
  EXPECT_EQ(all.at("slurmlet_endpoint_connections"), 2);
  EXPECT_EQ(all.at("slurmlet_endpoint_rejected_connections_total{cause=timeout}"), 3);
  EXPECT_EQ(all.at("slurmlet_endpoint_rejected_connections_total{cause=limit}"), 6);
  EXPECT_EQ(all.at("slurmlet_endpoint_rejected_connections_total{cause=evicted}"), 7);
  EXPECT_EQ(all.at("slurmlet_endpoint_reviews_total{kind=token}"), 4);
  EXPECT_EQ(all.at("slurmlet_endpoint_handshakes_delayed_total"), 8);
  EXPECT_EQ(all.at("slurmlet_endpoint_listening{endpoint=kubelet}"), 1);
  EXPECT_EQ(all.at("slurmlet_endpoint_listening{endpoint=healthz}"), 0);
  EXPECT_EQ(all.at("slurmlet_endpoint_bind_failures_total{endpoint=healthz}"), 9);
  EXPECT_FALSE(values(Report{}).contains("slurmlet_endpoint_listening{endpoint=kubelet}"))
      << "of what is not to be served nothing is said";
}

TEST(ChecksTest, NameTheProblem) {
  Report report = full_report();
  report.certificates.client_problem = "expired";
  const kube::RequestCounter requests;
  sync::LeaseStatus lease;
  lease.renewed_steady = kNow.steady - seconds{39};
  const auto snapshot = make_snapshot(report, lease, requests, {}, kNow, seconds{40});
  std::map<std::string, bool> ok;
  for (const auto& check : snapshot.checks) {
    ok[check.name] = check.ok;
  }
  EXPECT_EQ(ok,
            (std::map<std::string, bool>{{"credential", false}, {"lease", true}, {"node", true}}));
  report.api_error = Error{Code::kInvalid, "422 Unprocessable Entity"};
  report.api_error_since = kNow.steady - seconds{40};
  const auto later = make_snapshot(report, lease, requests, {}, kNow, seconds{40});
  const auto& node = later.checks.back();
  EXPECT_EQ(node.name, "node");
  EXPECT_FALSE(node.ok);
}

}  // namespace metrics_test
}  // namespace slurmlet::status
