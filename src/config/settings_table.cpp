#include "config/settings_table.h"

#include <algorithm>
#include <array>

#include "config/rules.h"

namespace slurmlet::config {
namespace {

// settings.*member, settings.*group.*member
template <auto... Path>
auto& in(Settings& settings) {
  return (settings.*....*Path);
}

constexpr std::int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
constexpr std::int64_t kMaxPort = 65535;

using S = Settings;
using K = KubernetesSettings;
using N = NodeSettings;
using L = SlurmSettings;
using E = EndpointSettings;
using log::Level;
using node::ReadyFollows;

// The words of a choice; further ones for the same value are accepted and not shown.
constexpr Word kLogLevels[] = {{"debug", Level::kDebug},     {"info", Level::kInfo},
                               {"warning", Level::kWarning}, {"error", Level::kError},
                               {"warn", Level::kWarning},    {"trace", Level::kDebug},
                               {"fatal", Level::kError},     {"panic", Level::kError}};
constexpr Word kReadyFollows[] = {{"daemon", ReadyFollows::kDaemon},
                                  {"slurmd", ReadyFollows::kSlurmd},
                                  {"slurm", ReadyFollows::kSlurm}};
constexpr Word kRecreate[] = {{"always", Recreate::kAlways}, {"never", Recreate::kNever}};
constexpr Word kSlurmSources[] = {{"auto", node::SlurmSource::kAuto},
                                  {"operator", node::SlurmSource::kOperator},
                                  {"scontrol", node::SlurmSource::kScontrol}};

constexpr Row kRows[] = {
    {.key = "logLevel",
     .flag = "--log-level",
     .field = &in<&S::log_level>,
     .help = "minimum severity of the messages to log: debug, info, warning or error",
     .words = kLogLevels},
    {.key = "stateDir",
     .flag = "--state-dir",
     .field = &in<&S::state_dir>,
     .help = "directory for data that must survive a restart",
     .rule = absolute_path_problem},
    {.key = "kubernetes.kubeconfig",
     .flag = "--kubeconfig",
     .environment = "KUBECONFIG",
     .field = &in<&S::kubernetes, &K::kubeconfig>,
     .help = "kubeconfig file with the API server and the credential of this node",
     .when_unset =
         "kubernetes.server, or the service account of a pod; with a bootstrap: kubeconfig in "
         "stateDir, written when the bootstrap succeeds"},
    {.key = "kubernetes.server",
     .flag = "--kubernetes-server",
     .field = &in<&S::kubernetes, &K::server>,
     .help = "URL of the API server, instead of a kubeconfig",
     .rule = server_problem},
    {.key = "kubernetes.caFile",
     .flag = "--kubernetes-ca-file",
     .field = &in<&S::kubernetes, &K::ca_file>,
     .help = "PEM file with the CA of kubernetes.server",
     .when_unset = "the system's CAs",
     .decides_trust = true},
    {.key = "kubernetes.caData",
     .flag = "--kubernetes-ca-data",
     .field = &in<&S::kubernetes, &K::ca_data>,
     .help = "CA of kubernetes.server, as PEM text",
     .decides_trust = true,
     .rule = pem_problem},
    {.key = "kubernetes.certificateFile",
     .flag = "--kubernetes-certificate-file",
     .field = &in<&S::kubernetes, &K::certificate_file>,
     .help = "PEM file with the client certificate for kubernetes.server"},
    {.key = "kubernetes.keyFile",
     .flag = "--kubernetes-key-file",
     .field = &in<&S::kubernetes, &K::key_file>,
     .help = "PEM file with the private key of kubernetes.certificateFile"},
    {.key = "kubernetes.tokenFile",
     .flag = "--kubernetes-token-file",
     .field = &in<&S::kubernetes, &K::token_file>,
     .help = "file with a bearer token for kubernetes.server; reloaded when it changes"},
    {.key = "kubernetes.bootstrapKubeconfig",
     .flag = "--bootstrap-kubeconfig",
     .field = &in<&S::kubernetes, &K::bootstrap_kubeconfig>,
     .help = "kubeconfig with a bootstrap token, used until this node has a certificate of its "
             "own and when that one is no longer accepted"},
    {.key = "kubernetes.bootstrapTokenFile",
     .flag = "--bootstrap-token-file",
     .field = &in<&S::kubernetes, &K::bootstrap_token_file>,
     .help = "file with a bootstrap token for kubernetes.server, instead of a bootstrap "
             "kubeconfig"},
    {.key = "kubernetes.caCertHashes",
     .flag = "--discovery-token-ca-cert-hash",
     .field = &in<&S::kubernetes, &K::ca_cert_hashes>,
     .help = "hashes of the public key of the cluster's CA, sha256:HEX[,sha256:HEX]; with the "
             "bootstrap token they discover and verify the CA, as in kubeadm join",
     .decides_trust = true,
     .rule = key_hashes_problem},
    {.key = "kubernetes.certDir",
     .flag = "--cert-dir",
     .field = &in<&S::kubernetes, &K::cert_dir>,
     .help = "directory of this node's own certificates and keys",
     .when_unset = "pki in stateDir",
     .rule = absolute_path_problem},
    {.key = "kubernetes.rotateCertificates",
     .flag = "--rotate-certificates",
     .field = &in<&S::kubernetes, &K::rotate_certificates>,
     .help = "renew the client certificate in certDir after 70 to 90 % of its lifetime"},
    {.key = "kubernetes.certificateDuration",
     .flag = "--kubernetes-certificate-duration",
     .field = &in<&S::kubernetes, &K::certificate_duration>,
     .help = "lifetime to request for this node's certificates (spec.expirationSeconds), at "
             "least 10m; 0s for the signer's default",
     .maximum = 3650 * 24 * kHour},
    {.key = "kubernetes.leaseDuration",
     .flag = "--kubernetes-lease-duration",
     .field = &in<&S::kubernetes, &K::lease_duration>,
     .help = "duration of the Node's Lease, which is renewed four times within it",
     .minimum = 10 * kSecond,
     .maximum = kHour},
    {.key = "kubernetes.statusReportInterval",
     .flag = "--kubernetes-status-report-interval",
     .field = &in<&S::kubernetes, &K::status_report_interval>,
     .help = "how often the Node's status is written when nothing has changed",
     .minimum = 10 * kSecond,
     .maximum = 24 * kHour},
    {.key = "node.name",
     .flag = "--nodename",
     .environment = "DEFAULT_NODE_NAME",
     .field = &in<&S::node, &N::name>,
     .help = "name of the Kubernetes Node",
     .when_unset = "the name in Metal3's metadata, then the host name in lower case",
     .rule = node_name_problem},
    {.key = "node.labels",
     .flag = "--node-labels",
     .field = &in<&S::node, &N::labels>,
     .help = "labels to set on the Node besides slurmlet's own",
     .entry_rule = label_problem},
    {.key = "node.providerID",
     .flag = "--node-provider-id",
     .field = &in<&S::node, &N::provider_id>,
     .help = "spec.providerID of the Node, e.g. metal3://NAMESPACE/HOST/MACHINE",
     .when_unset = "the one in Metal3's metadata",
     .rule = provider_id_problem},
    {.key = "node.metal3UUID",
     .flag = "--node-metal3-uuid",
     .field = &in<&S::node, &N::metal3_uuid>,
     .help = "UID of this machine's BareMetalHost, for the label metal3.io/uuid",
     .when_unset = "the one in Metal3's metadata",
     .rule = label_text_problem},
    {.key = "node.ip",
     .flag = "--node-ip",
     .environment = "VKUBELET_POD_IP",
     .field = &in<&S::node, &N::ip>,
     .help = "address to publish as InternalIP, or an IPv4 and an IPv6 address, "
             "comma-separated",
     .when_unset = "one, chosen from the machine's addresses",
     .rule = node_ips_problem},
    {.key = "node.publishHostname",
     .flag = "--node-publish-hostname",
     .field = &in<&S::node, &N::publish_hostname>,
     .help = "publish an address of type Hostname"},
    {.key = "node.kubeletVersion",
     .flag = "--node-kubelet-version",
     .field = &in<&S::node, &N::kubelet_version>,
     .help = "status.nodeInfo.kubeletVersion: a version, none, or auto: the API server's, as "
             "kubeadm upgrade requires. A Node with a providerID or the label metal3.io/uuid "
             "gets none from auto: Cluster API compares it with Machine.spec.version"},
    {.key = "node.gpuResources",
     .flag = "--node-gpu-resources",
     .field = &in<&S::node, &N::gpu_resources>,
     .help = "resource name for each Slurm Gres name or name:type, e.g. gpu:a100=nvidia.com/gpu",
     .when_unset = "chosen by the vendor of the GPUs",
     .entry_rule = gpu_resource_problem},
    {.key = "node.slurmLabels",
     .flag = "--node-slurm-labels",
     .field = &in<&S::node, &N::slurm_labels>,
     .help = "which Slurm data becomes labels: a list of cluster, version, partitions, "
             "features and gpu, or none",
     .rule = slurm_labels_problem},
    {.key = "node.readyFollows",
     .flag = "--node-ready-follows",
     .field = &in<&S::node, &N::ready_follows>,
     .help = "what the condition Ready means: daemon (slurmlet is running), slurmd (and "
             "slurmd is running) or slurm (and slurmctld does not report the node down)",
     .words = kReadyFollows},
    {.key = "node.notReadyGracePeriod",
     .flag = "--node-not-ready-grace-period",
     .field = &in<&S::node, &N::not_ready_grace>,
     .help = "how long slurmd may be down before the Node is not ready",
     .maximum = kHour},
    {.key = "node.excludeFromDisruption",
     .flag = "--node-exclude-from-disruption",
     .field = &in<&S::node, &N::exclude_from_disruption>,
     .help = "leave this Node out of the node controller's zone-disruption checks (label "
             "node.kubernetes.io/exclude-disruption), and keep cluster-autoscaler from removing it "
             "as idle (annotation cluster-autoscaler.kubernetes.io/scale-down-disabled)"},
    {.key = "node.unschedulable",
     .flag = "--node-unschedulable",
     .field = &in<&S::node, &N::unschedulable>,
     .help = "create the Node cordoned"},
    {.key = "node.taints",
     .flag = "--node-taints",
     .field = &in<&S::node, &N::taints>,
     .help = "taints to create the Node with besides slurmlet's own, "
             "KEY=VALUE:EFFECT[,KEY=VALUE:EFFECT]; those of an existing Node are left as they are",
     .rule = taints_problem},
    {.key = "node.recreate",
     .flag = "--node-recreate",
     .field = &in<&S::node, &N::recreate>,
     .help = "whether to create the Node again after it was deleted: always or never",
     .words = kRecreate},
    {.key = "node.recreateAfter",
     .flag = "--node-recreate-after",
     .field = &in<&S::node, &N::recreate_after>,
     .help = "how long to wait before creating a Node again that was deleted with its Cluster "
             "API Machine: a duration, or never (until the next boot). Such a Node was cordoned "
             "and had the annotation cluster.x-k8s.io/machine",
     .none = "never",
     .maximum = 30 * 24 * kHour},
    {.key = "slurm.nodeName",
     .flag = "--slurm-node",
     .field = &in<&S::slurm, &L::node_name>,
     .help = "NodeName of this machine in Slurm",
     .when_unset = "determined from slurmd and slurm.conf; several slurmds on one host need it",
     .rule = slurm_name_problem},
    {.key = "slurm.conf",
     .flag = "--slurm-conf",
     .environment = "SLURM_CONF",
     .field = &in<&S::slurm, &L::conf>,
     .help = "slurm.conf to use",
     .when_unset = "Slurm's own search order",
     .rule = absolute_path_problem},
    {.key = "slurm.binDir",
     .flag = "--slurm-bin-dir",
     .field = &in<&S::slurm, &L::bin_dir>,
     .help = "directory of scontrol and slurmd",
     .when_unset = "PATH",
     .rule = absolute_path_problem},
    {.key = "slurm.pollInterval",
     .flag = "--slurm-poll-interval",
     .field = &in<&S::slurm, &L::poll_interval>,
     .help =
         "interval between queries to slurmctld, without a record of slurmlet-operator. auto: by "
         "the square of the nodes in slurm.conf, 60s up to 346 nodes, 500s for 1000, 75m for "
         "3000. Beyond those slurmlet-operator is required",
     .none = "auto",
     .minimum = kSecond,
     .maximum = kHour},
    {.key = "slurm.commandTimeout",
     .flag = "--slurm-command-timeout",
     .field = &in<&S::slurm, &L::command_timeout>,
     .help = "time limit of one query; shorter than slurm.pollInterval",
     .minimum = 100,
     .maximum = 10 * kMinute},
    {.key = "slurm.staleAfter",
     .flag = "--slurm-stale-after",
     .field = &in<&S::slurm, &L::stale_after>,
     .help = "age from which the last answer is considered out of date, at least one and a half "
             "intervals; auto: so many, at least 5m",
     .none = "auto",
     .minimum = 2 * kSecond,
     .maximum = 24 * kHour},
    {.key = "slurm.maxBackoff",
     .flag = "--slurm-max-backoff",
     .field = &in<&S::slurm, &L::max_backoff>,
     .help = "longest interval between queries while slurmctld does not answer; auto: 5m, longer "
             "with over 1500 nodes in slurm.conf",
     .none = "auto",
     .minimum = kSecond,
     .maximum = 24 * kHour},
    {.key = "slurm.source",
     .flag = "--slurm-source",
     .field = &in<&S::slurm, &L::source>,
     .help = "where this node's state comes from: operator (the record that slurmlet-operator "
             "writes to the Node), scontrol (slurmctld) or auto: the record while it is valid, "
             "else scontrol",
     .words = kSlurmSources},
    {.key = "slurm.publishJobIDs",
     .flag = "--slurm-publish-job-ids",
     .field = &in<&S::slurm, &L::publish_job_ids>,
     .help = "list the IDs of the jobs that a draining node is waiting for"},
    {.key = "metal3.instanceData",
     .flag = "--metadata",
     .field = &in<&S::metal3, &Metal3Settings::instance_data>,
     .help = "cloud-init's instance data with Metal3's metadata"},
    {.key = "pods.maxBackoff",
     .flag = "--pods-max-backoff",
     .field = &in<&S::pods, &PodSettings::max_backoff>,
     .help = "longest wait before rejecting a pod of a controller that keeps creating pods here",
     .maximum = kHour},
    {.key = "endpoint.address",
     .flag = "--address",
     .field = &in<&S::endpoint, &E::address>,
     .help = "address the kubelet API listens on; :: for all IPv4 and IPv6 addresses",
     .rule = ip_problem},
    {.key = "endpoint.port",
     .flag = "--port",
     .environment = "KUBELET_PORT",
     .field = &in<&S::endpoint, &E::port>,
     .help = "port of the kubelet API; 0 disables it",
     .maximum = kMaxPort},
    {.key = "endpoint.healthzPort",
     .flag = "--healthz-port",
     .field = &in<&S::endpoint, &E::healthz_port>,
     .help = "port of /healthz on 127.0.0.1; 0 disables it",
     .maximum = kMaxPort},
    {.key = "endpoint.certificateFile",
     .flag = "--endpoint-certificate-file",
     .environment = "APISERVER_CERT_LOCATION",
     .field = &in<&S::endpoint, &E::certificate_file>,
     .help = "PEM file with the serving certificate of the kubelet API",
     .when_unset = "requested from the cluster, see endpoint.serverTLSBootstrap"},
    {.key = "endpoint.keyFile",
     .flag = "--endpoint-key-file",
     .environment = "APISERVER_KEY_LOCATION",
     .field = &in<&S::endpoint, &E::key_file>,
     .help = "PEM file with the private key of endpoint.certificateFile"},
    {.key = "endpoint.clientCAFile",
     .flag = "--endpoint-client-ca-file",
     .environment = "APISERVER_CA_CERT_LOCATION",
     .field = &in<&S::endpoint, &E::client_ca_file>,
     .help = "PEM file with the CA of the kubelet API's clients",
     .when_unset = "the CA of the API server in the kubeconfig",
     .decides_trust = true},
    {.key = "endpoint.serverTLSBootstrap",
     .flag = "--endpoint-server-tls-bootstrap",
     .field = &in<&S::endpoint, &E::server_tls_bootstrap>,
     .help = "without endpoint.certificateFile, request a serving certificate from the "
             "cluster; until it is approved, a self-signed one is used"},
};

}  // namespace

std::span<const Row> settings_table() { return kRows; }

const Row* find_row(std::string_view key) {
  const auto* const found = std::find_if(std::begin(kRows), std::end(kRows),
                                         [key](const Row& row) { return row.key == key; });
  return found == std::end(kRows) ? nullptr : found;
}

}  // namespace slurmlet::config
