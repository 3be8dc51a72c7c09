#pragma once

// This node's state by the annotation slurmlet.io/record of its own Node, where slurmlet-operator
// writes it (published_record.h). Nothing is queried: the text is handed in as the watch reports
// it.
//
// When a record counts, and when slurmctld is queried in its place:
// docs/explanation/slurm-state.md, Records. One that is too old because slurmctld itself fails is
// an answer, as long as the operator goes on to say so: whoever queried slurmctld instead would
// make it worse.
//
// Not thread-safe.

#include <optional>
#include <string>
#include <string_view>

#include "slurm/answers/query_result.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::slurm {

// An annotation, parsed as far as that is the same for every node.
struct ReadRecord {
  PublishedRecord published;
  std::optional<node::SlurmNodeRecord> node;  // nothing: slurmctld has no such node
};
Result<ReadRecord> read_record(std::string_view annotation);

// What it says about `node` of `cluster` ("" = not known) at `now`; unusable is kRecordUnavailable.
// `is_only`: there is no other source. Pure, as read_record().
QueryResult judge_record(const Result<ReadRecord>& record, const std::string& cluster,
                         const std::string& node, WallTime now, bool is_only = true);

class RecordSource {
 public:
  explicit RecordSource(bool is_only) : is_only_(is_only) {}
  // "" = the Node has none, nothing = the Node is not known. Whether that was new.
  bool set_record(const std::optional<std::string>& annotation);
  void set_cluster(const std::string& cluster) { cluster_ = cluster; }
  QueryResult judge(const std::string& node, WallTime now) const {
    return judge_record(record_, cluster_, node, now, is_only_);
  }
  bool is_known() const { return annotation_.has_value(); }  // the Node has been read
  // The operator has written one, usable or not.
  bool has_record() const { return annotation_ && !annotation_->empty(); }

 private:
  bool is_only_;
  std::string cluster_;
  std::optional<std::string> annotation_;  // nothing: the Node has not been read
  Result<ReadRecord> record_ = Error{Code::kNotFound, "this machine's Node has not been read yet"};
};

}  // namespace slurmlet::slurm
