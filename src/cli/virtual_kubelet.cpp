#include "cli/commands.h"

#include <fmt/format.h>

#include "base/text.h"

namespace slurmlet::cli {
namespace {

constexpr std::string_view kWithValue =
    "--authentication-token-webhook-cache-ttl --authorization-webhook-cache-authorized-ttl "
    "--authorization-webhook-cache-unauthorized-ttl --client-verify-ca --cluster-domain "
    "--full-resync-period --klog.log_backtrace_at --klog.log_dir --klog.log_file "
    "--klog.log_file_max_size --klog.stderrthreshold --klog.v --klog.vmodule --kube-api-burst "
    "--kube-api-qps --metrics-addr --namespace --os --pod-sync-workers --startup-timeout "
    "--stream-creation-timeout --stream-idle-timeout --taint --trace-exporter "
    "--trace-sample-rate --trace-service-name --trace-tag";
constexpr std::string_view kSwitches =
    "--authentication-token-webhook --disable-taint --enable-node-lease --klog.add_dir_header "
    "--klog.alsologtostderr --klog.legacy_stderr_threshold_behavior --klog.logtostderr "
    "--klog.one_output --klog.skip_headers --klog.skip_log_headers --no-verify-clients";

std::vector<IgnoredFlag> all_flags() {
  std::vector<IgnoredFlag> out;
  for (const auto name : split(kWithValue, ' ')) {
    out.push_back({name, true});
  }
  for (const auto name : split(kSwitches, ' ')) {
    out.push_back({name, false});
  }
  return out;
}

}  // namespace

const std::vector<IgnoredFlag>& ignored_flags() {
  static const std::vector<IgnoredFlag> kFlags = all_flags();
  return kFlags;
}

std::string ignored_warning(const IgnoredFlag& flag) {
  return fmt::format("{} has no effect{}", flag.flag,
                     flag.flag.starts_with("--klog.")    ? ": use --log-level"
                     : flag.flag == "--client-verify-ca" ? ": use --endpoint-client-ca-file"
                     : flag.flag == "--metrics-addr"     ? ": see endpoint.healthzPort"
                                                         : "");
}

}  // namespace slurmlet::cli
