#pragma once

// What slurmlet-operator writes about a node into the annotation `slurmlet.io/record` of its Node,
// and the daemon there reads: one line of JSON,
//
//   {"format":1,"cluster":"alps","dumpedAt":1763757000,"intervalSeconds":30,"refreshSeconds":300,
//    "text":"NodeName=n1 …\n"}
//
// "text" is the node's part of the dump (site_dump.h): "" when slurmctld knows no such node.
// "failure" is there while the last dump failed, "failedAt" with it; "dumpedAt" once one was good.
// Times are Unix seconds.
//
// Pure.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

inline constexpr int kRecordFormat = 1;
// The API server takes no more of all annotations of an object together.
inline constexpr std::size_t kMaxAnnotationBytes = std::size_t{256} << 10;

struct PublishedRecord {
  std::string cluster;                // ClusterName; "" if the writer does not know it
  std::optional<WallTime> dumped_at;  // when the last good dump began (seconds)
  Duration interval{};                // between dumps (seconds, 1 s to 1 day)
  Duration refresh{};                 // an unchanged record is written again after this (likewise)
  std::string failure;                // why there is no newer dump; "" while dumps are good
  std::optional<WallTime> failed_at = {};  // when the last dump failed (seconds)
  std::string text;                        // the node's record (record_text.h); "" = there is none
  bool operator==(const PublishedRecord&) const = default;
};

// Bytes that are not UTF-8 are replaced.
std::string to_annotation(const PublishedRecord& record);
// kInvalid, with why in stable words ("has format 2, …").
Result<PublishedRecord> parse_published_record(std::string_view annotation);

// A failure as PublishedRecord::failure has it: "ControllerUnreachable: …".
std::string failure_text(const QueryFailure& failure);
// The cause, where it lies with slurmctld itself: whoever queried slurmctld instead would make it
// worse. Nothing for other texts.
std::optional<node::SlurmFailure> controller_cause(std::string_view failure);

}  // namespace slurmlet::slurm
