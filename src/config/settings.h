#pragma once

// The finished configuration of slurmlet. Only finalize() (load.h) makes a Settings, so an
// unvalidated value cannot reach the code. Every field has one row in settings_table.h, which is
// the single source of its key, flag, environment variable, default, help text and documentation.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "node/policy.h"

namespace slurmlet::config {

using Milliseconds = std::chrono::milliseconds;  // all durations: "1m30s", "500ms", "60s"

enum class Recreate { kAlways, kNever };  // node.recreate

struct KubernetesSettings {
  // Path; "" = the parts below. Where a bootstrap is configured it is written when that succeeds,
  // and finalize() gives it a default in the state directory.
  std::string kubeconfig;
  // Without a kubeconfig: the parts one by one, or those of a pod (KUBERNETES_SERVICE_HOST/PORT and
  // the service account's files). finalize() leaves either kubeconfig or server set, or both where
  // server is for the bootstrap.
  std::string server;  // "https://host:port"
  std::string ca_file, certificate_file, key_file, token_file;
  std::string ca_data;  // PEM text instead of ca_file
  // The first credential: a kubeconfig with a bootstrap token as kubeadm writes it, or a file with
  // the token for `server`.
  std::string bootstrap_kubeconfig, bootstrap_token_file;
  std::string
      ca_cert_hashes;    // "sha256:<hex>,…": finds the CA with the token, as kubeadm join does
  std::string cert_dir;  // of the rotating certificates; finalize() fills in stateDir/pki
  // Of the environment, for a server whose kubeconfig names no proxy. No rows of the table: what a
  // proxy's URL holds may be secret.
  std::string https_proxy, no_proxy;
  bool rotate_certificates = true;
  Milliseconds certificate_duration{0};          // to request; 0 = what the signer gives
  Milliseconds lease_duration{40'000};           // as kubelet; renewed at a quarter of it
  Milliseconds status_report_interval{300'000};  // when nothing changed
  bool has_bootstrap() const {
    return !bootstrap_kubeconfig.empty() || !bootstrap_token_file.empty();
  }
  bool operator==(const KubernetesSettings&) const = default;
};

struct NodeSettings : node::NodeChoices {
  std::string name;    // --nodename; "" = Metal3 metadata, then host name
  std::string ip;      // one, or two of different families, comma-separated
  std::string taints;  // "key=value:effect,…", set at creation only
  std::string slurm_labels = "cluster,version,partitions,features,gpu";  // kinds, or "none"
  Milliseconds not_ready_grace{15'000};   // slurmd down → Ready False
  Recreate recreate = Recreate::kAlways;  // when somebody deletes our Node
  // When it was deleted with its Machine; nothing = not in this boot.
  std::optional<Milliseconds> recreate_after;
};

struct SlurmSettings {
  std::string node_name;                 // --slurm-node; "" = learnt
  std::string conf;                      // SLURM_CONF; "" = Slurm's own search order
  std::string bin_dir;                   // where scontrol is; "" = PATH
  Milliseconds command_timeout{15'000};  // our own deadline for one query
  // Nothing = auto, by the number of nodes in slurm.conf (slurm/sources/poll_pace.h).
  std::optional<Milliseconds> poll_interval;  // between queries to slurmctld
  std::optional<Milliseconds> stale_after;    // answers older than this are Unknown
  std::optional<Milliseconds> max_backoff;    // while slurmctld does not answer
  node::SlurmSource source = node::SlurmSource::kAuto;
  bool publish_job_ids = false;  // in the drain message
  bool operator==(const SlurmSettings&) const = default;
};

struct Metal3Settings {
  std::string instance_data = "/run/cloud-init/instance-data.json";
};

struct PodSettings {
  Milliseconds max_backoff{60'000};  // per controller that keeps re-creating pods here
};

struct EndpointSettings {
  std::string address;       // "" = all, of both families
  int port = 10250;          // the kubelet API; 0 = off
  int healthz_port = 10248;  // 127.0.0.1 only; 0 = off
  // Serving certificate of the kubelet API and the CA of its clients: what virtual-kubelet reads
  // from APISERVER_CERT_LOCATION, APISERVER_KEY_LOCATION and APISERVER_CA_CERT_LOCATION.
  std::string certificate_file, key_file, client_ca_file;
  bool server_tls_bootstrap = true;  // request a serving certificate from the cluster
  bool operator==(const EndpointSettings&) const = default;
};

struct Settings {
  std::string config_file;            // "" = none read
  std::vector<std::string> drop_ins;  // read after it
  log::Level log_level = log::Level::kInfo;
  std::string state_dir = "/var/lib/slurmlet";
  KubernetesSettings kubernetes;
  NodeSettings node;
  SlurmSettings slurm;
  Metal3Settings metal3;
  PodSettings pods;
  EndpointSettings endpoint;
  std::vector<std::string> warnings;  // e.g. accepted virtual-kubelet flags; logged once each
};

}  // namespace slurmlet::config
