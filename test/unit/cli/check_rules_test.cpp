#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/check/check_credentials.h"
#include "cli/check/check_machine.h"
#include "cli/check/check_node.h"
#include "node/vocabulary.h"

namespace slurmlet::cli {
namespace {

using check::Finding;
using check::Severity;
using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const WallTime kNow{hours{495'000}};

auto found(Severity severity, const char* text, const char* fix = "") {
  return AllOf(Field("severity", &Finding::severity, severity),
               Field("found", &Finding::found, HasSubstr(text)),
               Field("fix", &Finding::fix, HasSubstr(fix)));
}

TEST(CheckCredentials, Certificate) {
  const struct {
    const char* name;
    Duration begins, ends;  // from now
    Severity severity;
    const char *found, *fix;
  } rows[] = {
      {"system:node:n1", -hours{24}, hours{48}, Severity::kOk, "valid until", ""},
      {"system:node:n1", -hours{24}, hours{2}, Severity::kWarning, "valid until", "into /k"},
      {"system:node:n1", -hours{24}, -hours{1}, Severity::kError, "expired", "into /k"},
      {"system:node:n1", hours{1}, hours{48}, Severity::kError, "not valid before", "clock"},
      {"system:node:n2", -hours{24}, hours{48}, Severity::kError, "system:node:n2",
       "--nodename n2"},
      {"admin", -hours{24}, hours{48}, Severity::kWarning, "\"admin\"", ""},
  };
  for (const auto& row : rows) {
    tls::CertificateSummary one;
    one.common_name = row.name;
    one.not_before = kNow + std::chrono::duration_cast<WallTime::duration>(row.begins);
    one.not_after = kNow + std::chrono::duration_cast<WallTime::duration>(row.ends);
    EXPECT_THAT(certificate_finding(one, "/k", "n1", kNow),
                found(row.severity, row.found, row.fix));
  }
}

TEST(CheckMachine, Metadata) {
  using Kind = metal3::Note::Kind;
  daemon::NodeIdentity seen;
  seen.notes = {{Kind::kNoMetadata, "in any words"}};
  EXPECT_THAT(metadata_findings(seen, "/state"), ElementsAre(found(Severity::kInfo, "none")));
  seen.notes = {{Kind::kProblem, "/i: providerid is \"CI_MISSING_JINJA_VAR…\": a template used …"}};
  seen.metal3 = node::Metal3Facts{"u-1", "", "n1", {}, "/i"};
  EXPECT_THAT(metadata_findings(seen, "/state"),
              ElementsAre(found(Severity::kWarning, "CI_MISSING_JINJA_VAR"),
                          found(Severity::kOk, "/i: uuid u-1, providerID none")));
  seen.notes = {{Kind::kReprovisioned, "in any words"}};
  seen.reprovisioned = true;
  EXPECT_THAT(metadata_findings(seen, "/state"),
              ElementsAre(found(Severity::kOk, "u-1"), found(Severity::kWarning, "reprovisioned")));
  seen.reprovisioned = false;
  seen.metal3->source = "/state/metal3.json";
  EXPECT_THAT(metadata_findings(seen, "/state"), ElementsAre(found(Severity::kInfo, "u-1")));
  seen.policy.metal3_uuid = "u-2";
  seen.policy.provider_id = "x://y";
  EXPECT_THAT(metadata_findings(seen, "/state"),
              ElementsAre(found(Severity::kInfo, "uuid u-2, providerID x://y")));
}

TEST(CheckNode, Rights) {
  const auto all = needed_rights("n1", true, true);
  EXPECT_THAT(all, Contains(kube::OwnRight{"patch", "", "nodes", "status", "n1", "", ""}));
  EXPECT_THAT(all, Contains(kube::OwnRight{"watch", "", "pods", "", "", "", "spec.nodeName=n1"}));
  EXPECT_LT(needed_rights("n1", false, false).size(), all.size());
}

node::DesiredNode wanted_node() {
  node::DesiredNode wanted;
  wanted.name = "n1";
  wanted.labels["metal3.io/uuid"] = "u-1";
  wanted.taints = {{"virtual-kubelet.io/provider", "slurm", "NoSchedule"}};
  return wanted;
}

node::ObservedNode live_node() {
  node::ObservedNode live;
  live.name = "n1";
  live.uid = "uid-1";
  live.labels["metal3.io/uuid"] = "u-1";
  live.taints = wanted_node().taints;
  return live;
}

TEST(CheckNode, NodeAndLease) {
  NodeSeen seen;
  seen.name = "n1";
  seen.holder_identity = "n1/abc";
  const auto judged = [&] { return node_findings(seen, wanted_node()); };
  EXPECT_THAT(judged(), ElementsAre(found(Severity::kInfo, "not registered: slurmlet registers")));
  seen.deleted_with = "m1";
  EXPECT_THAT(judged().at(0).cause, HasSubstr("again until the next boot"));
  seen.deleted_until = "2026-06-21T00:10:00Z";
  EXPECT_THAT(judged().at(0).cause, HasSubstr("again until 2026-06-21T00:10:00Z"));
  seen.node = live_node();
  EXPECT_THAT(judged(), ElementsAre(found(Severity::kOk, "uid-1")));
  seen.node->taints.clear();
  EXPECT_THAT(judged(),
              ElementsAre(found(Severity::kOk, "uid-1"),
                          found(Severity::kWarning, "lacks the taint", "kubectl taint node n1")));
  seen.node = live_node();
  seen.node->labels["metal3.io/uuid"] = "u-2";
  EXPECT_THAT(judged(), ElementsAre(found(Severity::kError, "belongs to another machine")));
  seen.node = live_node();
  const auto lease = [&] { return lease_findings(seen, kNow).at(0); };
  EXPECT_THAT(lease_findings(seen, kNow), IsEmpty());
  seen.lease = kube::Lease{};
  seen.lease->holder_identity = "n1/abc";
  seen.lease->renew_time = "2026-06-20T23:59:50.000000Z";  // 10 s before kNow
  seen.lease->owner_node_uid = "uid-1";
  EXPECT_THAT(lease(), found(Severity::kOk, "held by n1/abc"));
  seen.lease->holder_identity = "n1/other";
  EXPECT_THAT(lease(), found(Severity::kError, "another machine runs Node n1"));
  seen.lease->renew_time = "2026-06-20T22:00:00.000000Z";
  EXPECT_THAT(lease(), found(Severity::kWarning, "appears to be gone"));
  seen.lease->holder_identity = "n1/abc";
  seen.lease->owner_node_uid = "uid-0";
  EXPECT_THAT(lease(), found(Severity::kInfo, "slurmlet renews it"));
  seen.problem = Error{Code::kDenied, "403"};
  EXPECT_THAT(judged(), ElementsAre(found(Severity::kError, "cannot be read")));
}

TEST(CheckMachine, Slurmd) {
  node::SlurmdFacts slurmd;
  EXPECT_THAT(slurmd_finding(slurmd), found(Severity::kWarning, "cannot determine"));
  slurmd = {node::SlurmdFacts::Liveness::kRunning, 15, "22.05.8", ""};
  EXPECT_THAT(slurmd_finding(slurmd), found(Severity::kOk, "pid 15, 22.05.8"));
  slurmd.liveness = node::SlurmdFacts::Liveness::kStopped;
  EXPECT_THAT(slurmd_finding(slurmd), found(Severity::kError, "suspended", "kill -CONT 15"));
  slurmd.liveness = node::SlurmdFacts::Liveness::kAbsent;
  EXPECT_THAT(slurmd_finding(slurmd), found(Severity::kError, "not running"));
}

TEST(CheckMachine, Slurmctld) {
  node::HostFacts facts;
  slurm::PollCounters counters;
  daemon::SlurmConfSeen conf{"", "there is none"};
  const auto judged = [&] { return slurmctld_finding(facts, counters, conf); };
  EXPECT_THAT(judged(),
              found(Severity::kError, "no slurm.conf in the standard locations",
                    "set slurm.conf in config.d/10-site.yaml, or SLURM_CONF; check ignores"));
  conf = {"/c", "open /c: No such file or directory"};
  EXPECT_THAT(judged(), found(Severity::kError, "slurm.conf was not read", "--slurm-conf"));
  EXPECT_EQ(judged().cause, conf.problem);
  EXPECT_THAT(judged().fix, Not(HasSubstr("ignores")));
  facts.slurm.failure = node::SlurmFailure::kBadConfiguration;
  EXPECT_THAT(judged().fix, Not(HasSubstr("ignores")));
  conf.path.clear();
  EXPECT_THAT(judged().fix, HasSubstr("check ignores a running slurmd's slurm.conf"));
  facts.slurm = {};
  facts.slurm_conf.path = "/etc/slurm/slurm.conf";
  conf = {facts.slurm_conf.path, ""};
  EXPECT_THAT(judged(), found(Severity::kError, "in time"));
  facts.slurm.failure = node::SlurmFailure::kMungeUnavailable;
  EXPECT_THAT(judged(), found(Severity::kError, "munge is not running", "systemctl start munge"));
  facts.slurm = {};
  facts.slurm.record.emplace();
  facts.slurm.record->name = "nid1";
  facts.slurm.record->state = {"IDLE", {}};
  facts.slurm.source = "scontrol";
  facts.slurm.answered_at = kNow;
  facts.slurm.stale = true;
  const Finding stale = judged();
  EXPECT_THAT(stale, found(Severity::kError, "state then IDLE"));
  EXPECT_EQ(stale.fix, "");
  facts.slurm.stale = false;
  counters.last_took = milliseconds{4};
  EXPECT_THAT(
      judged(),
      found(Severity::kOk,
            "answered in 4 ms through scontrol: nid1 is IDLE; the daemon queries it every 60 s"));
  counters.last_took.reset();
  facts.slurm.source = "slurmlet-operator";
  EXPECT_THAT(judged(), found(Severity::kOk, "not queried: slurmlet-operator reported at "));
}

TEST(CheckCredentials, TheEndpointsFilesAreTriedAsTheDaemonUsesThem) {
  config::Settings settings;
  settings.kubernetes.cert_dir = "/nonexistent";
  EXPECT_LT(serving_finding(settings, {}, kNow).severity, Severity::kWarning) << "none are set";
  settings.endpoint.client_ca_file = "/nonexistent/ca.crt";
  EXPECT_THAT(serving_finding(settings, {}, kNow),
              found(Severity::kError, "/nonexistent/ca.crt", "PEM"));
}

TEST(CheckMachine, Gpus) {
  node::HostFacts facts;
  EXPECT_THAT(gpu_finding(facts), found(Severity::kInfo, "not compared"));
  facts.slurm.record.emplace();
  facts.machine.gpus_by_pci_vendor["10de"] = 4;
  EXPECT_THAT(gpu_finding(facts), found(Severity::kInfo, "4 NVIDIA"));
  facts.slurm.record->gres = {{"gpu", "a100", 4}};
  facts.slurm_conf.gpu_files = {
      {"/dev/nvidia0"}, {"/dev/nvidia1"}, {"/dev/nvidia2"}, {"/dev/nvidia3"}};
  EXPECT_THAT(gpu_finding(facts).severity, Severity::kOk);
  facts.machine.missing_gpu_files = {"/dev/nvidia3"};
  EXPECT_THAT(gpu_finding(facts), found(Severity::kError, "/dev/nvidia3"));
}

TEST(CheckMachine, Ports) {
  using Owner = std::optional<host::PortOwner>;
  const Owner none, systemd{{0, 1, "systemd"}}, slurmlet{{0, 42, "slurmlet"}},
      kubelet{{0, 7, "kubelet"}}, hidden{{0, 0, ""}};
  const struct {
    const char* phase;  // of the running daemon; nullptr: it does not run
    Owner owner;
    bool may_be_daemon;
    Severity severity;
    const char* found;
  } rows[] = {
      {nullptr, none, true, Severity::kOk, "10250 (endpoint.port) is free"},
      {nullptr, slurmlet, true, Severity::kOk, "served by slurmlet (pid 42"},
      {nullptr, slurmlet, false, Severity::kError, "in use by slurmlet (pid 42"},
      {nullptr, kubelet, true, Severity::kError, "in use by kubelet (pid 7"},
      {nullptr, systemd, true, Severity::kInfo, "socket unit"},
      {nullptr, hidden, true, Severity::kError, "in use by a process"},
      {"", none, true, Severity::kWarning, "not served by the running daemon"},
      {"", slurmlet, true, Severity::kOk, "by the running daemon"},
      {"", systemd, true, Severity::kOk, "by the running daemon"},
      {"", hidden, true, Severity::kOk, "by the running daemon"},
      {"", kubelet, true, Severity::kError, "in use by kubelet"},
      {"", hidden, false, Severity::kError, "in use by a process"},
      {"bootstrap", none, true, Severity::kInfo, "once this node has its credential"},
  };
  for (const auto& row : rows) {
    std::optional<status::DaemonStatus> daemon;
    if (row.phase != nullptr) {
      daemon.emplace();
      daemon->pid = 42;
      daemon->phase = row.phase;
    }
    EXPECT_THAT(port_finding("10250 (endpoint.port)", row.owner, row.may_be_daemon, daemon),
                found(row.severity, row.found));
  }
}

TEST(CheckMachine, Daemon) {
  check::ServiceUnit unit;
  const Error away{Code::kUnavailable, "slurmlet is not running here"};
  EXPECT_THAT(daemon_finding(away, unit), found(Severity::kInfo, "not running here"));
  unit.enabled = true;
  EXPECT_THAT(daemon_finding(away, unit), found(Severity::kError, "not running here"));
  unit = {"", "", false, true};
  EXPECT_THAT(daemon_finding(away, unit), found(Severity::kError, "not running here"));
  unit = {};
  EXPECT_THAT(daemon_finding(Error{Code::kTimeout, "late"}, unit), found(Severity::kError, "late"));
  EXPECT_THAT(daemon_finding(Error{Code::kDenied, "uid"}, unit), found(Severity::kError, "uid"));
  status::DaemonStatus daemon;
  daemon.summary = "n1: not registered: the reason";
  daemon.problem = "the reason";
  EXPECT_THAT(daemon_finding(daemon, unit), found(Severity::kError, "n1: not registered"));
  EXPECT_EQ(daemon_finding(daemon, unit).cause, "") << "it is said already";
  daemon.problem = "another";
  EXPECT_EQ(daemon_finding(daemon, unit).cause, "another");
  daemon.healthy = true;
  EXPECT_THAT(daemon_finding(daemon, unit), found(Severity::kOk, "n1: not registered"));
}

}  // namespace
}  // namespace slurmlet::cli
