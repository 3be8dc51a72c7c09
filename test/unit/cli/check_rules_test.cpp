#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/check/check_cluster.h"
#include "cli/check/check_identity.h"
#include "cli/check/check_machine.h"
#include "cli/print_node.h"
#include "node/vocabulary.h"

namespace slurmlet::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const WallTime kNow{hours{495'000}};

auto found(Severity severity, const char* text, const char* cure = "") {
  return AllOf(Field("severity", &Finding::severity, severity),
               Field("found", &Finding::found, HasSubstr(text)),
               Field("cure", &Finding::cure, HasSubstr(cure)));
}

tls::CertificateSummary certificate(const std::string& name, Duration left) {
  tls::CertificateSummary out;
  out.common_name = name;
  out.not_before = kNow - hours{24};
  out.not_after = kNow + std::chrono::duration_cast<WallTime::duration>(left);
  return out;
}

CredentialSeen credential(const std::string& name, Duration left) {
  CredentialSeen seen;
  seen.node_name = "n1";
  seen.source = "/k";
  seen.certificate = certificate(name, left);
  return seen;
}

TEST(CheckIdentity, Certificate) {
  const auto judged = [](CredentialSeen seen) { return credential_findings(seen, kNow).at(0); };
  EXPECT_THAT(judged(credential("system:node:n1", hours{48})), found(Severity::kOk, "valid until"));
  EXPECT_THAT(judged(credential("system:node:n1", hours{2})),
              found(Severity::kWarning, "valid until", "into /k"));
  EXPECT_THAT(judged(credential("system:node:n1", -hours{1})),
              found(Severity::kError, "expired", "into /k"));
  EXPECT_THAT(judged(credential("system:node:n2", hours{48})),
              found(Severity::kError, "is for system:node:n2, this node is n1", "--nodename n2"));
  EXPECT_THAT(judged(credential("admin", hours{48})), found(Severity::kWarning, "\"admin\""));
  auto future = credential("system:node:n1", hours{48});
  future.certificate->not_before = kNow + hours{1};
  EXPECT_THAT(judged(future), found(Severity::kError, "not valid before", "clock"));
  auto mended = credential("system:node:n1", -hours{1});
  mended.has_bootstrap = true;
  EXPECT_THAT(judged(mended), found(Severity::kWarning, "expired", "bootstrap token"));
  CredentialSeen token;
  token.source = "/t";
  EXPECT_THAT(judged(token), found(Severity::kOk, "token from /t"));
  CredentialSeen broken;
  broken.problem = Error{Code::kInvalid, "/k: no PEM; put one"};
  broken.source = "/k";
  EXPECT_THAT(judged(broken), found(Severity::kError, "/k: no PEM", "into /k"));
  auto unset = broken;
  unset.has_server = false;
  EXPECT_THAT(judged(unset), found(Severity::kError, "no API server is configured",
                                   "set kubernetes.kubeconfig or kubernetes.bootstrapKubeconfig"));
  broken.has_bootstrap = broken.is_missing = true;
  EXPECT_THAT(judged(broken), found(Severity::kInfo, "none yet"));
  broken.is_missing = false;
  broken.problem = Error{Code::kDenied, "open /k: Permission denied"};
  EXPECT_THAT(judged(broken), found(Severity::kWarning, "Permission denied", "as root"));
}

TEST(CheckIdentity, SecretsThatEverybodyCanRead) {
  auto seen = credential("system:node:n1", hours{48});
  seen.secrets = {{"/a", 0600}, {"/b", 0640}, {"/c", 0644}};
  EXPECT_THAT(
      credential_findings(seen, kNow),
      ElementsAre(found(Severity::kOk, ""), found(Severity::kWarning, "/c", "chmod o= /c")));
}

TEST(CheckIdentity, Bootstrap) {
  BootstrapSeen seen;
  seen.file = "/b";
  EXPECT_THAT(bootstrap_findings(seen), ElementsAre(found(Severity::kOk, "/b")));
  seen.problem = Error{Code::kInvalid, "/b: no token"};
  EXPECT_THAT(bootstrap_findings(seen), ElementsAre(found(Severity::kInfo, "/b: no token")));
  seen.needed = true;
  EXPECT_THAT(bootstrap_findings(seen),
              ElementsAre(found(Severity::kError, "/b", "into /b; it is reloaded")));
  seen.file = "/run/credentials/slurmlet.service/slurmlet.bootstrap-token";
  EXPECT_THAT(bootstrap_findings(seen),
              ElementsAre(found(Severity::kError, "/b",
                                "into /etc/credstore/slurmlet.bootstrap-token (or where "
                                "LoadCredential finds it), then systemctl restart slurmlet")));
  seen.problem = Error{Code::kDenied, "open /b: Permission denied"};
  EXPECT_THAT(bootstrap_findings(seen),
              ElementsAre(found(Severity::kWarning, "Permission denied", "as root")));
}

TEST(CheckIdentity, ServingCertificate) {
  ServingSeen seen;
  EXPECT_THAT(serving_finding(seen, kNow), found(Severity::kInfo, "self-signed"));
  seen.asked_of_cluster = true;
  EXPECT_THAT(serving_finding(seen, kNow), found(Severity::kInfo, "none yet"));
  seen.daemon.emplace();
  seen.daemon->serving_request = "node-csr-1";
  EXPECT_THAT(serving_finding(seen, kNow),
              found(Severity::kWarning, "node-csr-1", "kubectl certificate approve node-csr-1"));
  seen.daemon.reset();
  seen.certificate = certificate("system:node:n1", hours{5});
  EXPECT_THAT(serving_finding(seen, kNow), found(Severity::kOk, "issued by the cluster"));
  seen.certificate = certificate("system:node:n1", -hours{5});
  EXPECT_THAT(serving_finding(seen, kNow), found(Severity::kWarning, "expired"));
  seen.given_file = "/s";
  EXPECT_THAT(serving_finding(seen, kNow), found(Severity::kError, "/s expired", "into /s"));
  seen.certificate.reset();
  seen.problem = Error{Code::kNotFound, "/s: not there"};
  EXPECT_THAT(serving_finding(seen, kNow), found(Severity::kError, "/s: not there", "into /s"));
}

TEST(CheckIdentity, Metadata) {
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

TEST(CheckCluster, HowFarACallCame) {
  using Stage = RequestFailure::Stage;
  const std::vector<std::pair<Stage, std::string>> rows = {
      {Stage::kName, "cannot be resolved"},
      {Stage::kConnection, "cannot be reached"},
      {Stage::kTls, "TLS fails"},
      {Stage::kServerExpired, "its certificate has expired"},
      {Stage::kServerNotYetValid, "its certificate is not yet valid"},
      {Stage::kServerName, "its certificate is for other names"},
      {Stage::kServerIssuer, "signed by another CA"},
      {Stage::kCredential, "rejects this node's credential"},
      {Stage::kAnswer, "returned an error"}};
  for (const auto& [stage, words] : rows) {
    ServerSeen seen;
    seen.url = "https://a:1";
    seen.problem = Error{Code::kUnavailable, "GET /x: y", {}, RequestFailure{stage, 0, "y"}};
    const Finding finding = server_finding(seen);
    EXPECT_THAT(finding, found(Severity::kError, "https://a:1: "));
    EXPECT_THAT(finding.found, HasSubstr(words));
    EXPECT_EQ(finding.cause, "GET /x: y");
    EXPECT_THAT(finding.cure, Not(IsEmpty()));
  }
  ServerSeen unreached;
  unreached.url_place = "kubernetes.server";
  unreached.ca_place = "/ca.crt";
  unreached.problem =
      Error{Code::kUnavailable, "x", {}, RequestFailure{Stage::kConnection, 0, "x"}};
  EXPECT_THAT(server_finding(unreached).cure, HasSubstr("the address in kubernetes.server"));
  const auto cure = [&](Stage stage) {
    unreached.problem->request->stage = stage;
    return server_finding(unreached).cure;
  };
  EXPECT_THAT(cure(Stage::kServerIssuer), HasSubstr("put this cluster's CA into /ca.crt"));
  EXPECT_THAT(cure(Stage::kServerName), HasSubstr("kubernetes.server"));
  EXPECT_THAT(cure(Stage::kServerNotYetValid), HasSubstr("clock"));
  EXPECT_THAT(cure(Stage::kServerExpired), HasSubstr("kubeadm certs renew apiserver"));
  for (const Stage stage :
       {Stage::kTls, Stage::kServerExpired, Stage::kServerNotYetValid, Stage::kServerName}) {
    EXPECT_THAT(cure(stage), Not(HasSubstr("CA into"))) << "another CA would be of no help";
  }
  unreached.ca_expired = "at 2026-01-01T00:00:00Z";
  EXPECT_THAT(cure(Stage::kServerExpired), HasSubstr("present CA"));
  EXPECT_THAT(server_finding(unreached).found, HasSubstr("/ca.crt expired at 2026"));
  ServerSeen expired;
  expired.problem = Error{Code::kDenied, "x", {}, RequestFailure{Stage::kCredential, 401, "x"}};
  expired.by_bootstrap = true;
  EXPECT_THAT(server_finding(expired), found(Severity::kError, "bootstrap token", "kubeadm token"));
}

TEST(CheckCluster, AnswerAndClock) {
  ServerSeen seen;
  seen.url = "https://a:1";
  seen.user = "system:node:n1";
  seen.version = "v1.36.2";
  seen.took = milliseconds{4};
  EXPECT_THAT(server_finding(seen),
              found(Severity::kOk, "https://a:1 v1.36.2 answered in 4 ms as system:node:n1"));
  seen.took = seconds{2};
  EXPECT_THAT(server_finding(seen), found(Severity::kWarning, "2000 ms"));
  EXPECT_FALSE(clock_finding(seen));
  seen.skew = milliseconds{4900};
  EXPECT_THAT(*clock_finding(seen), found(Severity::kOk, "agrees"));
  seen.skew = seconds{7};
  EXPECT_THAT(*clock_finding(seen), found(Severity::kWarning, "7 s ahead of", "chronyc"));
  seen.skew = -seconds{7};
  EXPECT_THAT(*clock_finding(seen), found(Severity::kWarning, "7 s behind"));
}

TEST(CheckCluster, Rights) {
  const auto all = needed_rights({"n1", true, true});
  EXPECT_THAT(all, SizeIs(21));
  EXPECT_THAT(all, Contains(kube::OwnRight{"patch", "", "nodes", "status", "n1", "", ""}));
  EXPECT_THAT(all, Contains(kube::OwnRight{"watch", "", "pods", "", "", "", "spec.nodeName=n1"}));
  EXPECT_THAT(needed_rights({"n1", false, false}), SizeIs(15));
  std::vector<RightSeen> seen;
  for (const auto& right : all) {
    seen.push_back({right, true, ""});
  }
  EXPECT_THAT(rights_findings(seen, {}, "n1"), ElementsAre(found(Severity::kOk, "all 21")));
  seen[0] = {all[0], false, "can only read its own"};
  const auto missing = rights_findings(seen, {}, "n1");
  EXPECT_THAT(missing, ElementsAre(found(Severity::kError, "1 of 21 missing: get nodes n1",
                                         "system:node:n1")));
  EXPECT_EQ(missing[0].cause, "can only read its own");
  EXPECT_THAT(rights_findings({}, Error{Code::kTimeout, "late"}, "n1"),
              ElementsAre(found(Severity::kWarning, "not all")));
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

TEST(CheckCluster, NodeAndLease) {
  NodeSeen seen;
  seen.name = "n1";
  seen.holder_identity = "n1/abc";
  const auto judged = [&] { return node_findings(seen, wanted_node(), kNow); };
  EXPECT_THAT(judged(), ElementsAre(found(Severity::kInfo, "not registered: slurmlet registers")));
  seen.gone_with = "m1";
  EXPECT_THAT(judged().at(0).cause, HasSubstr("again until the next boot"));
  seen.gone_until = "2026-06-21T00:10:00Z";
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
  seen.lease = kube::Lease{};
  seen.lease->holder_identity = "n1/abc";
  seen.lease->renew_time = "2026-06-20T23:59:50.000000Z";  // 10 s before kNow
  seen.lease->owner_node_uid = "uid-1";
  EXPECT_THAT(judged().at(1), found(Severity::kOk, "held by n1/abc"));
  seen.lease->holder_identity = "n1/other";
  EXPECT_THAT(judged().at(1), found(Severity::kError, "another machine runs Node n1"));
  seen.lease->renew_time = "2026-06-20T22:00:00.000000Z";
  EXPECT_THAT(judged().at(1), found(Severity::kWarning, "appears to be gone"));
  seen.lease->holder_identity = "n1/abc";
  seen.lease->owner_node_uid = "uid-0";
  EXPECT_THAT(judged().at(1), found(Severity::kInfo, "left over"));
  seen.problem = Error{Code::kDenied, "403"};
  EXPECT_THAT(judged(), ElementsAre(found(Severity::kError, "cannot be read")));
}

TEST(CheckMachine, Slurmd) {
  node::HostFacts facts;
  EXPECT_THAT(slurmd_finding(facts), found(Severity::kWarning, "cannot determine"));
  facts.slurmd = {node::SlurmdFacts::Liveness::kRunning, 15, "22.05.8", "", {}};
  EXPECT_THAT(slurmd_finding(facts), found(Severity::kOk, "pid 15, 22.05.8"));
  facts.slurmd.serves = false;
  EXPECT_THAT(slurmd_finding(facts), found(Severity::kError, "not serving requests"));
  facts.slurmd.liveness = node::SlurmdFacts::Liveness::kStopped;
  EXPECT_THAT(slurmd_finding(facts), found(Severity::kError, "suspended", "kill -CONT 15"));
  facts.slurmd.liveness = node::SlurmdFacts::Liveness::kAbsent;
  EXPECT_THAT(slurmd_finding(facts), found(Severity::kError, "not running", "systemctl"));
}

TEST(CheckMachine, Slurmctld) {
  node::HostFacts facts;
  slurm::PollCounters counters;
  daemon::SlurmConfSeen conf{"", "there is none", {}};
  const auto judged = [&] { return slurmctld_finding(facts, counters, conf); };
  EXPECT_THAT(judged(), found(Severity::kError, "no slurm.conf in the standard locations",
                              "set slurm.conf in config.yaml, or SLURM_CONF; check ignores"));
  conf = {"/c", "open /c: No such file or directory", {}};
  EXPECT_THAT(judged(), found(Severity::kError, "slurm.conf was not read", "--slurm-conf"));
  EXPECT_EQ(judged().cause, conf.problem);
  EXPECT_THAT(judged().cure, Not(HasSubstr("ignores")));
  facts.slurm.failure = node::SlurmFailure::kBadConfiguration;
  EXPECT_THAT(judged().cure, Not(HasSubstr("ignores")));
  conf.path.clear();
  EXPECT_THAT(judged().cure, HasSubstr("check ignores a running slurmd's slurm.conf"));
  facts.slurm = {};
  facts.slurm_conf.path = "/etc/slurm/slurm.conf";
  conf = {facts.slurm_conf.path, "", "/m"};
  EXPECT_THAT(judged(), found(Severity::kError, "in time", "scontrol"));
  facts.slurm.failure = node::SlurmFailure::kMungeUnavailable;
  EXPECT_THAT(judged(), found(Severity::kError, "munge is not running", "systemctl start munge"));
  facts.slurm = {};
  facts.slurm.record.emplace();
  facts.slurm.record->name = "nid1";
  facts.slurm.record->state = {"IDLE", {}};
  facts.slurm.source = "sinfo";
  facts.slurm.answered_at = kNow;
  facts.slurm.stale = true;
  const Finding stale = judged();
  EXPECT_THAT(stale, found(Severity::kError, "state then IDLE"));
  EXPECT_EQ(stale.cure, "");
  facts.slurm.stale = false;
  counters.last_took = milliseconds{4};
  EXPECT_THAT(
      judged(),
      found(Severity::kOk,
            "answered in 4 ms through sinfo: nid1 is IDLE; the daemon queries it every 60 s"));
  counters.last_took.reset();
  facts.slurm.source = "slurmlet-operator";
  EXPECT_THAT(judged(), found(Severity::kOk, "not queried: slurmlet-operator reported at "));
}

TEST(CheckMachine, MungeAndGpus) {
  EXPECT_THAT(
      munge_finding({}),
      found(Severity::kInfo, "not checked: slurm.conf was not read, so AuthType is unknown"));
  EXPECT_THAT(munge_finding({"", "", ""}), found(Severity::kInfo, "not used: AuthType"));
  EXPECT_THAT(munge_finding({"/m", "munged is not running", ""}),
              found(Severity::kError, "munged is not running", "systemctl start munge"));
  EXPECT_THAT(munge_finding({"/m", "", "bad key"}), found(Severity::kError, "credentials"));
  EXPECT_THAT(munge_finding({"/m", "", ""}), found(Severity::kOk, "/m"));
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
  EXPECT_THAT(gpu_finding(facts), found(Severity::kError, "/dev/nvidia3", "nvidia-smi"));
}

TEST(CheckMachine, WhetherTheSocketUnitHasAPort) {
  const std::string listens = "Listen=[::]:10250 (Stream)\nListen=127.0.0.1:10248 (Stream)\n";
  EXPECT_TRUE(socket_unit_has(listens + "ActiveState=active\n", 10250));
  EXPECT_TRUE(socket_unit_has(listens + "ActiveState=active\n", 10248));
  EXPECT_FALSE(socket_unit_has(listens + "ActiveState=active\n", 1025));
  EXPECT_FALSE(socket_unit_has(listens + "ActiveState=inactive\n", 10250));
  EXPECT_FALSE(socket_unit_has("ActiveState=inactive\n", 10250));
}

TEST(CheckMachine, PortsAndDaemon) {
  const PortSeen free{10250, "kubelet API", "endpoint.port"};
  PortSeen taken = free;
  taken.taken = true;
  PortSeen kubelet = taken;
  kubelet.pid = 42;
  kubelet.program = "kubelet";
  status::DaemonStatus daemon;
  daemon.pid = 42;
  PortSeen of_a_unit = taken;
  of_a_unit.pid = 1;
  of_a_unit.program = "systemd";
  EXPECT_THAT(port_findings({of_a_unit}, {}),
              ElementsAre(found(Severity::kError, "in use by systemd (pid 1)", "list-sockets")));
  of_a_unit.of_socket_unit = true;
  EXPECT_THAT(port_findings({of_a_unit}, daemon),
              ElementsAre(found(Severity::kOk, "for slurmlet.socket")));
  EXPECT_THAT(port_findings({of_a_unit}, {}),
              ElementsAre(found(Severity::kOk, "for slurmlet.socket")));
  EXPECT_THAT(port_findings({free}, {}), ElementsAre(found(Severity::kOk, "is free")));
  EXPECT_THAT(port_findings({free}, daemon), ElementsAre(found(Severity::kWarning, "not served")));
  daemon.phase = "bootstrap";
  EXPECT_THAT(port_findings({free}, daemon),
              ElementsAre(found(Severity::kInfo, "once this node has its credential")));
  daemon.phase = "running";
  EXPECT_THAT(port_findings({taken}, {}),
              ElementsAre(found(Severity::kError, "only root can see")));
  EXPECT_THAT(port_findings({taken}, daemon), ElementsAre(found(Severity::kOk, "apparently")));
  EXPECT_THAT(port_findings({kubelet}, daemon),
              ElementsAre(found(Severity::kOk, "by the running")));
  EXPECT_THAT(port_findings({kubelet}, {}),
              ElementsAre(found(Severity::kError, "in use by kubelet (pid 42)", "endpoint.port")));
  kubelet.program = "slurmlet";
  EXPECT_THAT(port_findings({kubelet}, {}),
              ElementsAre(found(Severity::kOk, "served by slurmlet (pid 42)")));
  for (PortSeen of_another : {kubelet, of_a_unit, taken}) {
    of_another.other = "slurmlet (pid 42, uid 1000)";
    const auto is_taken =
        found(Severity::kError, "in use by slurmlet (pid 42, uid 1000)", "endpoint.port");
    EXPECT_THAT(port_findings({of_another}, daemon), ElementsAre(is_taken));
    EXPECT_THAT(port_findings({of_another}, {}), ElementsAre(is_taken));
  }
  EXPECT_THAT(port_findings({PortSeen{}}, {}), ElementsAre(found(Severity::kInfo, "none")));
  EXPECT_THAT(daemon_finding(Error{Code::kUnavailable, "slurmlet is not running here"}),
              found(Severity::kInfo, "not running here"));
  EXPECT_THAT(daemon_finding(Error{Code::kTimeout, "late"}), found(Severity::kError, "late"));
  EXPECT_THAT(daemon_finding(Error{Code::kDenied, "uid 1"}), found(Severity::kError, "uid 1"));
  daemon.summary = "n1: starts";
  daemon.problem = "the Node is not registered yet";
  EXPECT_THAT(daemon_finding(daemon), found(Severity::kError, "n1: starts"));
  daemon.healthy = true;
  EXPECT_THAT(daemon_finding(daemon), found(Severity::kOk, "n1: starts"));
}

TEST(NodeDiffText, NothingMoreThanWhatWouldBeWritten) {
  auto live = live_node();
  live.labels["theirs"] = "x";
  auto wanted = wanted_node();
  wanted.conditions = {{"Ready", "True", "SlurmdRunning", "runs"}};
  live.conditions = {{wanted.conditions[0], "2026-01-01T00:00:00Z"}};
  live.capacity = wanted.capacity = {{"cpu", "4"}};
  EXPECT_EQ(diff_text(live, wanted, kNow), "") << "the heartbeat is no difference";
  wanted.labels["kubernetes.io/os"] = "linux";
  wanted.capacity["cpu"] = "8";
  wanted.conditions[0].status = "False";
  live.annotations["slurmlet.io/slurm-reason"] = "old";
  live.taints.clear();
  wanted.slurm_facts_known = true;
  EXPECT_EQ(diff_text(live, wanted, kNow),
            "--- Node n1 in the cluster\n"
            "+++ Node n1 desired by slurmlet\n"
            "  metadata.labels:\n"
            "+   kubernetes.io/os: linux\n"
            "  metadata.annotations:\n"
            "-   slurmlet.io/slurm-reason: old\n"
            "  spec.taints (only an administrator can add them: kubectl taint node):\n"
            "+   virtual-kubelet.io/provider=slurm:NoSchedule\n"
            "  status.capacity:\n"
            "-   cpu: 4\n"
            "+   cpu: 8\n"
            "  status.conditions:\n"
            "-   Ready: True SlurmdRunning \"runs\"\n"
            "+   Ready: False SlurmdRunning \"runs\"\n");
  live.labels["metal3.io/uuid"] = "u-2";
  EXPECT_THAT(diff_text(live, wanted, kNow), HasSubstr("! slurmlet would change nothing: "));
}

}  // namespace
}  // namespace slurmlet::cli
