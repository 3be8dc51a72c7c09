#include "config/settings_table.h"

#include <algorithm>

namespace slurmlet::config {
namespace {

template <auto Member>
auto& top(Settings& settings) {
  return settings.*Member;
}

template <auto Group, auto Member>
auto& in(Settings& settings) {
  return settings.*Group.*Member;
}

constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kHour = 60 * kMinute;
constexpr std::int64_t kMaxPort = 65535;

using S = Settings;
using K = KubernetesSettings;
using N = NodeSettings;
using L = SlurmSettings;
using E = EndpointSettings;

void add_general(std::vector<Row>& rows) {
  constexpr std::string_view kSection = "General";
  rows.push_back(
      {kSection,
       "logLevel",
       "--log-level",
       "",
       &top<&S::log_level>,
       "minimum severity of the messages to log: debug, info, warning or error",
       "",
       Rule::kChoice,
       0,
       0,
       {"debug", "info", "warning", "error"},
       {{"warn", "warning"}, {"trace", "debug"}, {"fatal", "error"}, {"panic", "error"}}});
  rows.push_back({kSection, "stateDir", "--state-dir", "", &top<&S::state_dir>,
                  "directory for data that must survive a restart", "", Rule::kAbsolutePath});
  rows.push_back(
      {kSection, "cpuAffinity", "--cpu-affinity", "", &top<&S::cpu_affinity>,
       "CPUs that slurmlet and its children run on: none (any), slurmd (those that slurmd "
       "confines itself to, see CoreSpecCount) or a list, e.g. 0,64",
       "", Rule::kCpuAffinity});
}

void add_bootstrap(std::vector<Row>& rows, std::string_view section) {
  rows.push_back(
      {section, "kubernetes.bootstrapKubeconfig", "--bootstrap-kubeconfig", "",
       &in<&S::kubernetes, &K::bootstrap_kubeconfig>,
       "kubeconfig with a bootstrap token, used until this node has a certificate of its "
       "own and when that one is no longer accepted",
       ""});
  rows.push_back({section, "kubernetes.bootstrapTokenFile", "--bootstrap-token-file", "",
                  &in<&S::kubernetes, &K::bootstrap_token_file>,
                  "file with a bootstrap token for kubernetes.server, instead of a bootstrap "
                  "kubeconfig",
                  ""});
  rows.push_back({section, "kubernetes.caCertHashes", "--discovery-token-ca-cert-hash", "",
                  &in<&S::kubernetes, &K::ca_cert_hashes>,
                  "hashes of the public key of the cluster's CA, sha256:HEX[,sha256:HEX]; with the "
                  "bootstrap token they discover and verify the CA, as in kubeadm join",
                  "", Rule::kKeyHashes});
  rows.push_back({section, "kubernetes.certDir", "--cert-dir", "",
                  &in<&S::kubernetes, &K::cert_dir>,
                  "directory of this node's own certificates and keys", "pki in stateDir",
                  Rule::kAbsolutePath});
  rows.push_back({section, "kubernetes.rotateCertificates", "--rotate-certificates", "",
                  &in<&S::kubernetes, &K::rotate_certificates>,
                  "renew the client certificate in certDir after 70 to 90 % of its lifetime", ""});
  rows.push_back({section, "kubernetes.certificateDuration", "--kubernetes-certificate-duration",
                  "", &in<&S::kubernetes, &K::certificate_duration>,
                  "lifetime to request for this node's certificates (spec.expirationSeconds), at "
                  "least 10m; 0s for the signer's default",
                  "", Rule::kNone, 0, 3650 * 24 * kHour});
}

void add_kubernetes(std::vector<Row>& rows) {
  constexpr std::string_view kSection = "Kubernetes API";
  rows.push_back(
      {kSection, "kubernetes.kubeconfig", "--kubeconfig", "KUBECONFIG",
       &in<&S::kubernetes, &K::kubeconfig>,
       "kubeconfig file with the API server and the credential of this node",
       "kubernetes.server, or the service account of a pod; with a bootstrap: kubeconfig in "
       "stateDir, written when the bootstrap succeeds"});
  rows.push_back({kSection, "kubernetes.server", "--kubernetes-server", "",
                  &in<&S::kubernetes, &K::server>,
                  "address of the API server, instead of a kubeconfig", "", Rule::kServer});
  rows.push_back({kSection, "kubernetes.caFile", "--kubernetes-ca-file", "",
                  &in<&S::kubernetes, &K::ca_file>, "PEM file with the CA of kubernetes.server",
                  "the system's CAs"});
  rows.push_back({kSection, "kubernetes.caData", "--kubernetes-ca-data", "",
                  &in<&S::kubernetes, &K::ca_data>, "CA of kubernetes.server, as PEM text", "",
                  Rule::kPem});
  rows.push_back({kSection, "kubernetes.certificateFile", "--kubernetes-certificate-file", "",
                  &in<&S::kubernetes, &K::certificate_file>,
                  "PEM file with the client certificate for kubernetes.server", ""});
  rows.push_back({kSection, "kubernetes.keyFile", "--kubernetes-key-file", "",
                  &in<&S::kubernetes, &K::key_file>,
                  "PEM file with the private key of kubernetes.certificateFile", ""});
  rows.push_back({kSection, "kubernetes.tokenFile", "--kubernetes-token-file", "",
                  &in<&S::kubernetes, &K::token_file>,
                  "file with a bearer token for kubernetes.server; reloaded when it changes", ""});
  add_bootstrap(rows, kSection);
  rows.push_back({kSection, "kubernetes.leaseDuration", "--kubernetes-lease-duration", "",
                  &in<&S::kubernetes, &K::lease_duration>,
                  "lifetime of the node's lease, renewed four times within it", "", Rule::kNone,
                  10 * kSecond, kHour});
  rows.push_back({kSection, "kubernetes.statusReportInterval",
                  "--kubernetes-status-report-interval", "",
                  &in<&S::kubernetes, &K::status_report_interval>,
                  "how often the Node's status is written when nothing has changed", "",
                  Rule::kNone, 10 * kSecond, 24 * kHour});
}

void add_node_identity(std::vector<Row>& rows) {
  constexpr std::string_view kSection = "Node";
  rows.push_back({kSection, "node.name", "--nodename", "DEFAULT_NODE_NAME", &in<&S::node, &N::name>,
                  "name of the Kubernetes Node",
                  "the name in Metal3's metadata, then the host name in lower case",
                  Rule::kNodeName});
  rows.push_back({kSection, "node.labels", "--node-labels", "", &in<&S::node, &N::labels>,
                  "labels to set on the Node besides slurmlet's own", "", Rule::kLabels});
  rows.push_back({kSection, "node.providerID", "--node-provider-id", "",
                  &in<&S::node, &N::provider_id>,
                  "spec.providerID of the Node, e.g. metal3://NAMESPACE/HOST/MACHINE",
                  "the one in Metal3's metadata", Rule::kProviderId});
  rows.push_back({kSection, "node.metal3UUID", "--node-metal3-uuid", "",
                  &in<&S::node, &N::metal3_uuid>,
                  "UID of this machine's BareMetalHost, for the label metal3.io/uuid",
                  "the one in Metal3's metadata", Rule::kLabelValue});
  rows.push_back({kSection, "node.ip", "--node-ip", "VKUBELET_POD_IP", &in<&S::node, &N::ip>,
                  "address to publish as InternalIP, or an IPv4 and an IPv6 address with a comma "
                  "between",
                  "one, chosen from the machine's addresses", Rule::kNodeIps});
  rows.push_back({kSection, "node.publishHostname", "--node-publish-hostname", "",
                  &in<&S::node, &N::publish_hostname>, "publish an address of type Hostname", ""});
  rows.push_back({kSection, "node.kubeletVersion", "--node-kubelet-version", "",
                  &in<&S::node, &N::kubelet_version>,
                  "status.nodeInfo.kubeletVersion; only for Cluster API Machines with spec.version",
                  "left empty"});
  rows.push_back(
      {kSection, "node.gpuResources", "--node-gpu-resources", "", &in<&S::node, &N::gpu_resources>,
       "resource name for each Slurm Gres name or name:type, e.g. gpu:a100=nvidia.com/gpu",
       "chosen by the vendor of the GPUs", Rule::kGpuResources});
}

void add_slurm_labels(std::vector<Row>& rows) {
  rows.push_back({"Node", "node.slurmLabels", "--node-slurm-labels", "",
                  &in<&S::node, &N::slurm_labels>,
                  "which Slurm data becomes labels: a list of cluster, version, partitions, "
                  "features and gpu, or none",
                  "", Rule::kSlurmLabels});
}

void add_node_behaviour(std::vector<Row>& rows) {
  constexpr std::string_view kSection = "Node";
  rows.push_back({kSection,
                  "node.readyFollows",
                  "--node-ready-follows",
                  "",
                  &in<&S::node, &N::ready_follows>,
                  "what the condition Ready means: daemon (slurmlet is running), slurmd (and "
                  "slurmd is running) or slurm (and slurmctld does not report the node down)",
                  "",
                  Rule::kChoice,
                  0,
                  0,
                  {"daemon", "slurmd", "slurm"}});
  rows.push_back({kSection, "node.notReadyGracePeriod", "--node-not-ready-grace-period", "",
                  &in<&S::node, &N::not_ready_grace>,
                  "how long slurmd may be down before the Node is not ready", "", Rule::kNone, 0,
                  kHour});
  rows.push_back({kSection, "node.excludeFromDisruption", "--node-exclude-from-disruption", "",
                  &in<&S::node, &N::exclude_from_disruption>,
                  "exclude this Node from the cluster's share of failed nodes (label "
                  "node.kubernetes.io/exclude-disruption)",
                  ""});
  rows.push_back({kSection, "node.unschedulable", "--node-unschedulable", "",
                  &in<&S::node, &N::unschedulable>, "create the Node cordoned", ""});
  rows.push_back(
      {kSection, "node.taints", "--node-taints", "", &in<&S::node, &N::taints>,
       "taints to create the Node with besides slurmlet's own, "
       "KEY=VALUE:EFFECT[,KEY=VALUE:EFFECT]; those of an existing Node are left as they are",
       "", Rule::kTaints});
  rows.push_back({kSection,
                  "node.recreate",
                  "--node-recreate",
                  "",
                  &in<&S::node, &N::recreate>,
                  "whether to create the Node again after it was deleted: always or never",
                  "",
                  Rule::kChoice,
                  0,
                  0,
                  {"always", "never"}});
  rows.push_back({kSection, "node.recreateAfter", "--node-recreate-after", "",
                  &in<&S::node, &N::recreate_after>,
                  "when a Node was deleted with its Cluster API Machine (it was cordoned and had "
                  "the annotation cluster.x-k8s.io/machine), how long to wait before creating it "
                  "again: a duration, or never (until the next boot)",
                  "", Rule::kNone, 0, 30 * 24 * kHour});
}

void add_slurm(std::vector<Row>& rows) {
  constexpr std::string_view kSection = "Slurm";
  rows.push_back({kSection, "slurm.nodeName", "--slurm-node", "", &in<&S::slurm, &L::node_name>,
                  "NodeName of this machine in Slurm", "determined from slurmd and slurm.conf",
                  Rule::kSlurmName});
  rows.push_back({kSection, "slurm.conf", "--slurm-conf", "SLURM_CONF", &in<&S::slurm, &L::conf>,
                  "slurm.conf to use", "Slurm's own search order", Rule::kAbsolutePath});
  rows.push_back({kSection, "slurm.binDir", "--slurm-bin-dir", "", &in<&S::slurm, &L::bin_dir>,
                  "directory of sinfo and scontrol", "PATH", Rule::kAbsolutePath});
  rows.push_back({kSection, "slurm.pollInterval", "--slurm-poll-interval", "",
                  &in<&S::slurm, &L::poll_interval>,
                  "interval between queries to slurmctld about this node", "", Rule::kNone, kSecond,
                  kHour});
  rows.push_back({kSection, "slurm.commandTimeout", "--slurm-command-timeout", "",
                  &in<&S::slurm, &L::command_timeout>,
                  "time limit of one query; shorter than slurm.pollInterval", "", Rule::kNone, 100,
                  10 * kMinute});
  rows.push_back({kSection, "slurm.staleAfter", "--slurm-stale-after", "",
                  &in<&S::slurm, &L::stale_after>,
                  "age from which the last answer is considered out of date", "", Rule::kNone,
                  2 * kSecond, 24 * kHour});
  rows.push_back({kSection, "slurm.maxBackoff", "--slurm-max-backoff", "",
                  &in<&S::slurm, &L::max_backoff>,
                  "longest interval between queries while slurmctld does not answer", "",
                  Rule::kNone, kSecond, 24 * kHour});
  rows.push_back({kSection, "slurm.confirmInterval", "--slurm-confirm-interval", "",
                  &in<&S::slurm, &L::confirm_interval>,
                  "shortest interval between full queries, which confirm what an answer about a "
                  "single node leaves open",
                  "", Rule::kNone, kSecond, 24 * kHour});
}

void add_slurm_sources(std::vector<Row>& rows) {
  constexpr std::string_view kSection = "Slurm";
  rows.push_back({kSection,
                  "slurm.source",
                  "--slurm-source",
                  "",
                  &in<&S::slurm, &L::source>,
                  "how slurmctld is queried: cli (sinfo), rest (slurmrestd), feed (what slurmlet "
                  "feed wrote) or auto",
                  "",
                  Rule::kChoice,
                  0,
                  0,
                  {"auto", "cli", "rest", "feed"}});
  rows.push_back(
      {kSection, "slurm.restURL", "--slurm-rest-url", "", &in<&S::slurm, &L::rest_url>,
       "where slurmrestd listens: unix:/PATH, https://HOST:PORT or http://127.0.0.1:PORT", "",
       Rule::kRestUrl});
  rows.push_back({kSection, "slurm.restCAFile", "--slurm-rest-ca-file", "",
                  &in<&S::slurm, &L::rest_ca_file>, "PEM file with the CA of slurm.restURL",
                  "the system's CAs"});
  rows.push_back({kSection, "slurm.restUser", "--slurm-rest-user", "",
                  &in<&S::slurm, &L::rest_user>,
                  "user name sent to slurmrestd with the token (X-SLURM-USER-NAME)",
                  "the user that the token is for"});
  rows.push_back({kSection, "slurm.jwtFile", "--slurm-jwt-file", "", &in<&S::slurm, &L::jwt_file>,
                  "file with the token (JWT) for slurmrestd; reloaded when it changes",
                  "SLURM_JWT in the environment"});
  rows.push_back({kSection, "slurm.feed", "--slurm-feed", "", &in<&S::slurm, &L::feed>,
                  "directory in which slurmlet feed publishes the states of all nodes", "",
                  Rule::kAbsolutePath});
  rows.push_back(
      {kSection, "slurm.questionsPerHour", "--slurm-questions-per-hour", "",
       &in<&S::slurm, &L::questions_per_hour>,
       "maximum number of queries to slurmctld in any hour, including those on local evidence", "",
       Rule::kNone, 1, 3600});
  rows.push_back({kSection, "slurm.publishJobIDs", "--slurm-publish-job-ids", "",
                  &in<&S::slurm, &L::publish_job_ids>,
                  "list the IDs of the jobs that a draining node is waiting for", ""});
}

void add_others(std::vector<Row>& rows) {
  rows.push_back({"Metal3", "metal3.instanceData", "--metadata", "",
                  &in<&S::metal3, &Metal3Settings::instance_data>,
                  "cloud-init's instance data with Metal3's metadata", ""});
  rows.push_back(
      {"Pods", "pods.maxBackoff", "--pods-max-backoff", "",
       &in<&S::pods, &PodSettings::max_backoff>,
       "longest wait before rejecting a pod of a controller that keeps binding pods here", "",
       Rule::kNone, 0, kHour});
  constexpr std::string_view kSection = "Endpoints";
  rows.push_back({kSection, "endpoint.address", "--address", "", &in<&S::endpoint, &E::address>,
                  "address the kubelet API listens on; :: for all IPv4 and IPv6 addresses", "",
                  Rule::kIp});
  rows.push_back({kSection, "endpoint.port", "--port", "KUBELET_PORT", &in<&S::endpoint, &E::port>,
                  "port of the kubelet API; 0 for none", "", Rule::kNone, 0, kMaxPort});
  rows.push_back({kSection, "endpoint.healthzPort", "--healthz-port", "",
                  &in<&S::endpoint, &E::healthz_port>, "port of /healthz on 127.0.0.1; 0 for none",
                  "", Rule::kNone, 0, kMaxPort});
  rows.push_back({kSection, "endpoint.certificateFile", "--endpoint-certificate-file",
                  "APISERVER_CERT_LOCATION", &in<&S::endpoint, &E::certificate_file>,
                  "PEM file with the serving certificate of the kubelet API",
                  "requested from the cluster, see endpoint.serverTLSBootstrap"});
  rows.push_back({kSection, "endpoint.keyFile", "--endpoint-key-file", "APISERVER_KEY_LOCATION",
                  &in<&S::endpoint, &E::key_file>,
                  "PEM file with the private key of endpoint.certificateFile", ""});
  rows.push_back({kSection, "endpoint.clientCAFile", "--endpoint-client-ca-file",
                  "APISERVER_CA_CERT_LOCATION", &in<&S::endpoint, &E::client_ca_file>,
                  "PEM file with the CA of the kubelet API's clients",
                  "the CA of the API server in the kubeconfig"});
  rows.push_back({kSection, "endpoint.serverTLSBootstrap", "--endpoint-server-tls-bootstrap", "",
                  &in<&S::endpoint, &E::server_tls_bootstrap>,
                  "without endpoint.certificateFile, request a serving certificate from the "
                  "cluster; until it is approved, a self-signed one is used",
                  ""});
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  add_general(rows);
  add_kubernetes(rows);
  add_node_identity(rows);
  add_slurm_labels(rows);
  add_node_behaviour(rows);
  add_slurm(rows);
  add_slurm_sources(rows);
  add_others(rows);
  return rows;
}

}  // namespace

const std::vector<Row>& settings_table() {
  static const std::vector<Row> kRows = all_rows();
  return kRows;
}

const Row* find_row(std::string_view key) {
  const auto& rows = settings_table();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [key](const Row& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace slurmlet::config
