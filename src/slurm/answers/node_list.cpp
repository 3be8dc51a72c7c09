#include "slurm/answers/node_list.h"

#include <utility>

#include "slurm/answers/node_json.h"
#include "slurm/answers/node_json_record.h"
#include "slurm/answers/record_text.h"

namespace slurmlet::slurm {
namespace {

constexpr int kDeepest = 64;
constexpr std::string_view kNodes = "nodes";
constexpr std::string_view kBetween = ", \t\r\n{]";

Error no_list() { return {Code::kInvalid, "the answer is not a list of nodes"}; }
Error too_long() { return {Code::kInvalid, "the answer is longer than any list of nodes"}; }

}  // namespace

NodeListReader::Place NodeListReader::place() const {
  if (!in_list_) {
    return Place::kFrame;
  }
  return depth_ > 2 ? Place::kNode : Place::kBetween;
}

// Whether nothing follows from it; most do not.
bool NodeListReader::is_plain(char c) const {
  if (in_string_) {
    return depth_ != 1 && !escaped_ && c != '"' && c != '\\';
  }
  return c != '"' && c != '{' && c != '}' && c != '[' && c != ']' && place() != Place::kBetween;
}

void NodeListReader::step_in_string(char c) {
  if (escaped_) {
    escaped_ = false;
  } else if (c == '\\') {
    escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
    return;
  }
  if (depth_ == 1 && key_.size() <= kNodes.size()) {
    key_ += c;
  }
}

Status NodeListReader::open_bracket(char c) {
  const bool begins = c == '[' && depth_ == 1 && key_ == kNodes;
  if (begins && std::exchange(had_list_, true)) {
    return no_list();
  }
  in_list_ = in_list_ || begins;
  return ++depth_ > kDeepest ? no_list() : Status{};
}

Status NodeListReader::step(char c) {
  if (in_string_) {
    step_in_string(c);
  } else if (place() == Place::kBetween && kBetween.find(c) == std::string_view::npos) {
    return no_list();
  } else if (c == '"') {
    in_string_ = true;
    if (depth_ == 1) {
      key_.clear();
    }
  } else if (c == '{' || c == '[') {
    return open_bracket(c);
  } else if ((c == '}' || c == ']') && depth_ > 0) {
    --depth_;
    in_list_ = in_list_ && depth_ > 1;
  }
  return {};
}

Status NodeListReader::feed(std::string_view bytes) {
  bytes_ += bytes.size();
  if (bytes_ > max_bytes_) {
    return too_long();
  }
  std::size_t from = 0;
  const auto keep = [&](Place where, std::size_t end) {
    if (where != Place::kBetween) {
      (where == Place::kFrame ? frame_ : element_).append(bytes.substr(from, end - from));
    }
    from = end;
    return frame_.size() <= kMaxElement && element_.size() <= kMaxElement;
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (is_plain(bytes[i])) {
      continue;
    }
    const Place before = place();
    if (const Status stepped = step(bytes[i]); !stepped) {
      return stepped;
    }
    if (place() == before) {
      continue;
    }
    // The brackets of a node are the node's, those of the list the frame's.
    if (!keep(before, before == Place::kBetween ? i : i + 1)) {
      return too_long();
    }
    if (const Status taken = before == Place::kNode ? take_node() : Status{}; !taken) {
      return taken;
    }
  }
  return keep(place(), bytes.size()) ? Status{} : too_long();
}

Status NodeListReader::take_node() {
  const auto node = compact_node_json(element_);
  element_.clear();
  has_nodes_ = true;
  if (!node) {
    return no_list();
  }
  const auto& [name, text] = *node;
  if (is_record_name(name)) {
    records_[name] += text + "\n";
  }
  return records_.size() > kMaxRecords ? too_long() : Status{};
}

}  // namespace slurmlet::slurm
