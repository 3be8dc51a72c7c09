#include "slurm/answers/record_text.h"

#include "slurm/answers/node_json.h"
#include "slurm/answers/scontrol_text.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {

bool is_record_name(std::string_view name) { return valid_node_name(name) && name.front() != '.'; }

Result<node::SlurmNodeRecord> read_record_text(std::string_view text) {
  if (!text.ends_with('\n')) {
    return Error{Code::kInvalid, "is cut off"};
  }
  std::vector<node::SlurmNodeRecord> nodes;
  if (!text.starts_with('{')) {
    nodes = parse_scontrol_nodes(text).nodes;
  } else if (text.find('\n') + 1 < text.size()) {
    return Error{Code::kInvalid, "contains more than one record"};
  } else if (auto node = parse_node_json(text)) {
    nodes.push_back(*std::move(node));
  }
  if (nodes.size() > 1) {
    return Error{Code::kInvalid, "contains more than one record"};
  }
  // A line break in what people may write could hide the record and begin another.
  if (nodes.empty() || nodes.front().state.base.empty() || !is_record_name(nodes.front().name) ||
      !(text.starts_with('{') || text.starts_with("NodeName=" + nodes.front().name + " "))) {
    return Error{Code::kInvalid, "contains no node record"};
  }
  return std::move(nodes.front());
}

}  // namespace slurmlet::slurm
