#include "cli/virtual_kubelet.h"

#include <fmt/format.h>

namespace slurmlet::cli {
namespace {

constexpr std::string_view kNoPods = "slurmlet runs no pods";
constexpr std::string_view kOwnTaint =
    "slurmlet always taints the Node with virtual-kubelet.io/provider=slurm, because pods cannot "
    "run there";
constexpr std::string_view kUseLogLevel = "slurmlet logs to stderr; use --log-level";
constexpr std::string_view kNoTracing = "slurmlet sends no traces";
constexpr std::string_view kNoPodExec = "slurmlet runs no pods, so it has no streams";
constexpr std::string_view kOwnAccess =
    "the API server decides who may use the kubelet API; see endpoint.clientCAFile";
constexpr std::string_view kOwnPace =
    "slurmlet paces its own requests; see kubernetes.statusReportInterval";

}  // namespace

const std::vector<IgnoredFlag>& ignored_flags() {
  static const std::vector<IgnoredFlag> kFlags = {
      {"--cluster-domain", true, kNoPods},
      {"--namespace", true, "slurmlet handles this node's pods in all namespaces"},
      {"--os", true, "slurmlet runs on Linux only"},
      {"--pod-sync-workers", true, kNoPods},
      {"--full-resync-period", true, "slurmlet watches its pods and needs no periodic resync"},
      {"--startup-timeout", true, "slurmlet waits for the API server for as long as it takes"},
      {"--stream-idle-timeout", true, kNoPodExec},
      {"--stream-creation-timeout", true, kNoPodExec},
      {"--metrics-addr", true,
       "slurmlet has no separate metrics address; see endpoint.healthzPort"},
      {"--taint", true, kOwnTaint},
      {"--disable-taint", false, kOwnTaint},
      {"--enable-node-lease", false, "slurmlet always renews the node's lease"},
      {"--trace-exporter", true, kNoTracing},
      {"--trace-service-name", true, kNoTracing},
      {"--trace-tag", true, kNoTracing},
      {"--trace-sample-rate", true, kNoTracing},
      {"--kube-api-qps", true, kOwnPace},
      {"--kube-api-burst", true, kOwnPace},
      {"--client-verify-ca", true, "use --endpoint-client-ca-file"},
      {"--no-verify-clients", false, kOwnAccess},
      {"--authentication-token-webhook", false, kOwnAccess},
      {"--authentication-token-webhook-cache-ttl", true, kOwnAccess},
      {"--authorization-webhook-cache-authorized-ttl", true, kOwnAccess},
      {"--authorization-webhook-cache-unauthorized-ttl", true, kOwnAccess},
      {"--klog.add_dir_header", false, kUseLogLevel},
      {"--klog.alsologtostderr", false, kUseLogLevel},
      {"--klog.legacy_stderr_threshold_behavior", false, kUseLogLevel},
      {"--klog.log_backtrace_at", true, kUseLogLevel},
      {"--klog.log_dir", true, kUseLogLevel},
      {"--klog.log_file", true, kUseLogLevel},
      {"--klog.log_file_max_size", true, kUseLogLevel},
      {"--klog.logtostderr", false, kUseLogLevel},
      {"--klog.one_output", false, kUseLogLevel},
      {"--klog.skip_headers", false, kUseLogLevel},
      {"--klog.skip_log_headers", false, kUseLogLevel},
      {"--klog.stderrthreshold", true, kUseLogLevel},
      {"--klog.v", true, kUseLogLevel},
      {"--klog.vmodule", true, kUseLogLevel},
  };
  return kFlags;
}

std::string ignored_warning(const IgnoredFlag& flag) {
  return fmt::format("{} has no effect: {}", flag.flag, flag.why);
}

}  // namespace slurmlet::cli
