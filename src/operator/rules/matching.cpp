#include "operator/rules/matching.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace slurmlet::op {

std::string first_label(std::string_view name) {
  return to_lower(std::string{name.substr(0, name.find('.'))});
}

const std::string& claimed_name(const KubeNode& node) {
  return node.slurm_node.empty() ? node.name : node.slurm_node;
}

bool fits(std::string_view name, const SlurmNode& slurm) {
  const std::string label = first_label(name);
  return !label.empty() &&
         (label == first_label(slurm.name) || label == first_label(slurm.hostname));
}

std::vector<std::string> claimants(const std::map<std::string, std::set<std::string>>& by_slurm,
                                   const SlurmNode& slurm) {
  std::vector<std::string> out;
  if (const auto claims = by_slurm.find(slurm.name); claims != by_slurm.end()) {
    std::copy_if(claims->second.begin(), claims->second.end(), std::back_inserter(out),
                 [&](const auto& name) { return fits(name, slurm); });
  }
  return out;
}

std::string distrust(const KubeNode& node, const SlurmNode& slurm, std::size_t claims) {
  if (claims > 1) {
    return "more than one Node claims to be Slurm node " + slurm.name;
  }
  if (fits(node.name, slurm)) {
    return "";
  }
  return "Node " + node.name + " is named neither like Slurm node " + slurm.name +
         " nor like its NodeHostName " + slurm.hostname;
}

}  // namespace slurmlet::op
