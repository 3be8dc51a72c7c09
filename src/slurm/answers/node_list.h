#pragma once

// slurmrestd's answer about all nodes, taken apart while it comes: tens of megabytes of which only
// one node at a time is held as it was sent; nlohmann's parsers want the whole of it at once. What
// is left when the nodes are taken out is a small document, for parse_nodes_json(). Pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slurmlet::slurm {

class NodeListReader {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
  // What one slurmd may say of itself takes some megabytes, as JSON escapes it.
  static constexpr std::size_t kMaxElement = std::size_t{16} << 20;

  explicit NodeListReader(std::size_t max_bytes = kMaxBytes) : max_bytes_(max_bytes) {}

  // kInvalid: it is more than a list of nodes can be, or none. Nothing is to be fed then.
  Status feed(std::string_view bytes);

  // By name, what compact_node_json() makes of each, with a line break behind it. What pretends to
  // be a second record of a node is kept with the first, for the reader to reject; what has no
  // node's name is left out.
  std::map<std::string, std::string> take_records() { return std::move(records_); }
  bool has_nodes() const { return has_nodes_; }  // with a name or without
  // The answer with an empty list.
  const std::string& frame() const { return frame_; }

 private:
  enum class Place : std::uint8_t { kFrame, kBetween, kNode };  // "between" nodes of the list
  Place place() const;
  bool is_plain(char c) const;
  void step_in_string(char c);
  Status step(char c);
  Status open_bracket(char c);
  Status take_node();

  std::size_t max_bytes_;
  std::map<std::string, std::string> records_;
  std::string frame_, element_;
  std::string key_;  // or the last text in the outermost object
  std::size_t bytes_ = 0;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false, in_list_ = false, has_nodes_ = false;
  bool had_list_ = false;
};

}  // namespace slurmlet::slurm
