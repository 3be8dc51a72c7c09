#pragma once

// The flags of virtual-kubelet 1.11's command line (cmd/virtual-kubelet in its repository) and of
// its older and derived ones (kube-api-*, the webhook flags of node-cli) that mean nothing here.
// They are accepted, so that slurmlet can take virtual-kubelet's place without changing how it is
// started, and each gives one warning.

#include <string>
#include <string_view>
#include <vector>

namespace slurmlet::cli {

struct IgnoredFlag {
  std::string_view flag;
  bool takes_value = true;  // false: a boolean, which may be given as --flag or --flag=true
  std::string_view why;     // why it has no effect, and what to use
};

const std::vector<IgnoredFlag>& ignored_flags();
// "--os has no effect: …".
std::string ignored_warning(const IgnoredFlag& flag);

}  // namespace slurmlet::cli
