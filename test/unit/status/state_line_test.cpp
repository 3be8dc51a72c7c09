#include "status/state_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "fixtures.h"

namespace slurmlet::status {
namespace state_line_test {

// The Error of a failed request.
Error answered(Code code, int http_status, const std::string& request, const std::string& reason) {
  return {code,
          request + reason,
          {},
          RequestFailure{RequestFailure::Stage::kAnswer, http_status, reason}};
}

using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::StartsWith;
using Liveness = node::SlurmdFacts::Liveness;
using sync::LeaseStatus;

const char* const kWaitsForApproval = "n1: waiting for approval of CSR node-csr-8x2lm";
const WallTime kRenewed{seconds{1795183331}};  // 2026-11-20T14:02:11Z

Report healthy() {
  Report report;
  report.node_name = "n1";
  report.registered = true;
  report.api_server = "https://192.0.2.10:6443";
  report.ready = {"Ready", "True", "SlurmdRunning", "slurmd is running"};
  report.facts.slurmd.liveness = Liveness::kRunning;
  report.facts.slurm.record.emplace();
  report.facts.slurm.record->state = {"IDLE", {}};
  report.facts.slurm.answered_at = kRenewed - seconds{9};
  return report;
}

LeaseStatus renewed() {
  LeaseStatus lease;
  lease.renewed_at = kRenewed;
  return lease;
}

void unregister(Report& report) {
  report.registered = false;
  report.facts.slurm = {};
}

struct Row {
  const char* what;
  std::function<void(Report&, LeaseStatus&)> change;
  const char* line;
};

std::vector<Row> rows() {
  return {
      {"all is well", [](Report&, LeaseStatus&) {},
       "n1: Ready, Slurm IDLE, lease renewed 14:02:11Z"},
      {"Slurm drains it",
       [](Report& r, LeaseStatus&) {
         r.facts.slurm.record->state = {"MIXED", {"DRAIN"}};
       },
       "n1: Ready, Slurm MIXED+DRAIN, lease renewed 14:02:11Z"},
      {"a job began since the dump",
       [](Report& r, LeaseStatus&) {
         r.facts.jobs = node::LocalJobs{.jobs = 1, .allocated_cpus = {}, .job_ids = {17}};
       },
       "n1: Ready, Slurm IDLE, lease renewed 14:02:11Z"},
      {"slurmd just went",
       [](Report& r, LeaseStatus&) { r.facts.slurmd.liveness = Liveness::kAbsent; },
       "n1: Ready, slurmd is down, Slurm IDLE, lease renewed 14:02:11Z"},
      {"slurmd has gone",
       [](Report& r, LeaseStatus&) {
         r.facts.slurmd.liveness = Liveness::kAbsent;
         r.ready = {"Ready", "False", "SlurmdNotRunning", "slurmd is not running on this machine"};
       },
       "n1: NotReady, slurmd is down, Slurm IDLE, lease renewed 14:02:11Z"},
      {"slurmd cannot be seen",
       [](Report& r, LeaseStatus&) {
         r.facts.slurmd.liveness = Liveness::kUnknown;
         r.ready = {"Ready", "Unknown", "SlurmdUnknown", "/proc cannot be read"};
       },
       "n1: Ready unknown, slurmd state unknown, Slurm IDLE, lease renewed 14:02:11Z"},
      {"slurmd is suspended",
       [](Report& r, LeaseStatus&) { r.facts.slurmd.liveness = Liveness::kStopped; },
       "n1: Ready, slurmd is suspended, Slurm IDLE, lease renewed 14:02:11Z"},
      {"not ready for another cause",
       [](Report& r, LeaseStatus&) {
         r.ready = {"Ready", "False", "NodeShuttingDown", "node is shutting down"};
       },
       "n1: NotReady (node is shutting down), Slurm IDLE, lease renewed 14:02:11Z"},
      {"munge has just gone",
       [](Report& r, LeaseStatus&) {
         r.facts.slurm.failure = node::SlurmFailure::kMungeUnavailable;
       },
       "n1: Ready, Slurm IDLE at 2026-11-20T14:02:02Z (munge is not running since), lease renewed "
       "14:02:11Z"},
      {"munge is missing",
       [](Report& r, LeaseStatus&) {
         r.facts.slurm.record.reset();
         r.facts.slurm.failure = node::SlurmFailure::kMungeUnavailable;
       },
       "n1: Ready, Slurm state unknown (munge is not running), lease renewed 14:02:11Z"},
      {"slurmctld went long ago",
       [](Report& r, LeaseStatus&) {
         r.facts.slurm.stale = true;
         r.facts.slurm.failure = node::SlurmFailure::kControllerUnreachable;
       },
       "n1: Ready, Slurm state unknown (slurmctld does not answer), lease renewed 14:02:11Z"},
      {"no query for long", [](Report& r, LeaseStatus&) { r.facts.slurm.stale = true; },
       "n1: Ready, Slurm state unknown (the last answer is too old), lease renewed 14:02:11Z"},
      {"slurmctld is not queried yet", [](Report& r, LeaseStatus&) { r.facts.slurm = {}; },
       "n1: Ready, Slurm not queried yet, lease renewed 14:02:11Z"},
      {"the lease is not renewed yet", [](Report&, LeaseStatus& l) { l = {}; },
       "n1: Ready, Slurm IDLE, lease not renewed yet"},
      {"the lease is late", [](Report&, LeaseStatus& l) { l.last_error = "no answer in time"; },
       "n1: Ready, Slurm IDLE, lease not renewed since 2026-11-20T14:02:11Z (no answer in time)"},
      {"the Node cannot be written",
       [](Report& r, LeaseStatus&) {
         r.api_error = answered(Code::kDenied, 403,
                                "PATCH /api/v1/nodes/n1/status: ", "403 Forbidden: not yours");
       },
       "n1: Ready, Slurm IDLE, lease renewed 14:02:11Z, Node update failed: API server "
       "https://192.0.2.10:6443 returned 403 Forbidden: not yours"},
      {"the Node is kept otherwise",
       [](Report& r, LeaseStatus&) { r.node_drift = "spec.providerID is rejected"; },
       "n1: Ready, Slurm IDLE, lease renewed 14:02:11Z, Node differs: spec.providerID is "
       "rejected"},
      {"the credential is rejected",
       [](Report& r, LeaseStatus&) {
         r.certificates.client_problem = "the client certificate expired at T";
         r.api_error = answered(Code::kDenied, 401, "GET /x: ", "401 Unauthorized");
       },
       "n1: Ready, Slurm IDLE, lease renewed 14:02:11Z, the client certificate expired at T"},
      {"no API server",
       [](Report& r, LeaseStatus&) {
         unregister(r);
         r.api_error = answered(
             Code::kUnavailable, 0,
             "register: GET https://192.0.2.10:6443/api/v1/nodes/n1: ", "connection refused");
       },
       "n1: not registered: API server https://192.0.2.10:6443 does not answer (connection "
       "refused); Slurm not queried yet"},
      {"a busy API server",
       [](Report& r, LeaseStatus&) {
         unregister(r);
         r.api_error =
             answered(Code::kUnavailable, 503,
                      "register: GET /api/v1/nodes/n1: ", "503 Service Unavailable: later");
       },
       "n1: not registered: API server https://192.0.2.10:6443 returned 503 Service Unavailable: "
       "later; Slurm not queried yet"},
      {"a server that we do not trust",
       [](Report& r, LeaseStatus&) {
         unregister(r);
         r.api_error = answered(Code::kDenied, 0,
                                "register: GET /api/v1/nodes/n1: ", "certificate verify failed: x");
       },
       "n1: not registered: API server https://192.0.2.10:6443: certificate verify failed: x; "
       "Slurm not queried yet"},
      {"another machine has the name",
       [](Report& r, LeaseStatus&) {
         r.registered = false;
         r.block_reason = "the Lease is held by another machine";
       },
       "n1: not registered: the Lease is held by another machine; Slurm IDLE"},
      {"the certificate has expired before it was registered",
       [](Report& r, LeaseStatus&) {
         r.registered = false;
         r.facts.slurmd.liveness = Liveness::kAbsent;
         r.certificates.client_problem = "the client certificate expired at T";
       },
       "n1: not registered: the client certificate expired at T; slurmd is down, Slurm IDLE"},
      {"registration is under way", [](Report& r, LeaseStatus&) { unregister(r); },
       "n1: not registered yet; Slurm not queried yet"},
      {"nothing has happened yet", [](Report& r, LeaseStatus&) { r = {}; }, "slurmlet: starting"},
  };
}

TEST(StateLineTest, ShowsStateAndProblems) {
  for (const auto& row : rows()) {
    Report report = healthy();
    LeaseStatus lease = renewed();
    row.change(report, lease);
    EXPECT_EQ(state_line(report, lease), row.line) << row.what;
  }
}

TEST(StateLineTest, ShowsTheBootstrap) {
  Report report;
  report.node_name = "n1";
  report.bootstrapping = true;
  report.api_server = "https://192.0.2.10:6443";
  EXPECT_EQ(state_line(report, {}), "n1: requesting its certificate");
  report.api_error = answered(Code::kTimeout, 0, "GET /api/v1/x: ", "no answer in time");
  EXPECT_EQ(state_line(report, {}),
            "n1: no certificate yet: API server https://192.0.2.10:6443 does not answer (no answer "
            "in time)");
  report.api_error = Error{Code::kInternal, "create /etc/slurmlet/x: No space left on device"};
  EXPECT_EQ(state_line(report, {}),
            "n1: no certificate yet: create /etc/slurmlet/x: No space left on device");
  report.api_error.reset();
  report.certificates.client_requests.emplace();
  report.certificates.client_requests->problem = "request node-csr-1 was denied";
  EXPECT_EQ(state_line(report, {}), "n1: no certificate yet: request node-csr-1 was denied");
  report.certificates.client_requests->pending_since = WallTime{};
  report.certificates.client_requests->request_name = "node-csr-8x2lm";
  EXPECT_EQ(state_line(report, {}), kWaitsForApproval);
}

// In docs/how-to/service.md.
TEST(StateLineTest, DocumentsShowNoOtherLines) {
  const auto text = read_file(fixtures() / "../../docs/how-to/service.md");
  ASSERT_TRUE(text) << text.error().message;
  std::set<std::string, std::less<>> known{kWaitsForApproval};
  for (const auto& row : rows()) {
    known.insert(row.line);
  }
  const std::string_view begin = "Status: \"hpc-x7k2p";
  int shown = 0;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.starts_with(begin)) {
      ++shown;
      const auto rest = line.substr(begin.size(), line.size() - begin.size() - 1);
      EXPECT_TRUE(known.contains("n1" + std::string{rest})) << line;
    }
  }
  EXPECT_GE(shown, 5);
}

TEST(StateLineTest, TextChangesWithTheStateOnly) {
  LeaseStatus later = renewed();
  *later.renewed_at += seconds{10};
  EXPECT_NE(state_line(healthy(), renewed()), state_line(healthy(), later));
  EXPECT_EQ(state_text(healthy(), renewed()), state_text(healthy(), later));
  EXPECT_EQ(state_text(healthy(), later), "n1: Ready, Slurm IDLE, lease renewed");
  later.last_error = "gone";
  EXPECT_NE(state_text(healthy(), renewed()), state_text(healthy(), later));
}

TEST(StateLineTest, IsAlwaysOneBoundedLine) {
  Report report = healthy();
  unregister(report);
  report.api_error =
      answered(Code::kInternal, 0, "GET /x: ", "a\nb\x01\xff " + std::string(1000, 'y'));
  const std::string line = state_line(report, {});
  EXPECT_EQ(line.size(), kMaxStateLine);
  EXPECT_THAT(
      line,
      StartsWith("n1: not registered: API server https://192.0.2.10:6443: a b \xEF\xBF\xBD y"));
  EXPECT_THAT(line, EndsWith("..."));
}

}  // namespace state_line_test
}  // namespace slurmlet::status
