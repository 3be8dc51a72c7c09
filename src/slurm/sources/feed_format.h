#pragma once

// What `slurmlet feed` leaves in its directory for all nodes of a site, and what it asks for it:
//
//   DIR/feed.json     one line, the header: whose nodes, as of when, by whom, how often
//   DIR/nodes/NAME    the record of one node, as `scontrol -o show node` printed it
//
// The reader asks with `scontrol -a -d -o show node`, which is two requests to slurmctld, as one
// `sinfo` is. `sinfo -N` for all nodes is not used: its client compares every row with every other
// (10,000 nodes in four partitions took more than two minutes, scontrol 0.2 s). A full dump also
// makes slurmctld compute what is allocated, so that is fresh here.
//
// Pure.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/command.h"
#include "base/result.h"
#include "slurm/answers/sinfo.h"

namespace slurmlet::slurm {

inline constexpr const char* kFeedHeaderFile = "feed.json";
inline constexpr const char* kFeedNodes = "nodes";
inline constexpr int kFeedFormat = 1;
// More than any node's record; Reason, Comment and Extra have no limit worth naming.
inline constexpr std::size_t kMaxFeedFileBytes = std::size_t{256} << 10;

struct FeedHeader {
  int format = kFeedFormat;
  std::string cluster;                // ClusterName; "" if the reader does not know it
  std::string reader;                 // host name
  std::string slurm_version;          // of the reader's scontrol; "" if unknown
  std::optional<WallTime> dumped_at;  // when the question of the last good dump began (seconds)
  Duration interval{};                // from dump to dump (seconds)
  std::int64_t nodes = 0;
  std::string failure;  // why there is no newer dump; "" while dumps are good
  bool operator==(const FeedHeader&) const = default;
};

std::string to_text(const FeedHeader& header);
// kInvalid, with why in stable words.
Result<FeedHeader> parse_feed_header(std::string_view text);

// A node name that may be the name of a file: a valid_node_name() that does not begin with ".".
bool is_feed_file_name(std::string_view name);

// The one question for all nodes. Times in it are Unix seconds.
CommandSpec feed_question(const SinfoSettings& settings);
// Why the answer cannot be used; nothing when it is worth splitting. Stable words.
std::optional<std::string> feed_question_failure(const CommandOutput& output);

// The answer as one text for each node. Load and free memory are struck out (N/A): they change with
// each ping of slurmctld, and the node itself knows better. A line that begins no record goes on
// with the one before it (line breaks in a Reason). What pretends to be a second record of a node
// is kept with the first, for the daemon to refuse. kInvalid when it is no list of nodes.
Result<std::map<std::string, std::string>> split_dump(std::string_view text);

}  // namespace slurmlet::slurm
