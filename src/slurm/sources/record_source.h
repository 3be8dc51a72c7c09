#pragma once

// The NodeSource that takes this node's state from the annotation slurmlet.io/record of its own
// Node, where slurmlet-operator writes it (published_record.h). It starts nothing and queries
// nobody: the text is handed in as the watch reports it, and is news at once.
//
// When a record counts, and when another source is asked in its place: docs/operator.md, Records.
// One that is too old because slurmctld itself fails is an answer, as long as the operator goes on
// to say so: whoever queried slurmctld instead would make it worse. An unusable one fails already
// in ask().
//
// Not thread-safe.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "slurm/sources/node_source.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::slurm {

// An annotation, read as far as it is the same whoever asks.
struct ReadRecord {
  PublishedRecord published;
  std::optional<node::SlurmNodeRecord> node;  // nothing: slurmctld has no such node
};
Result<ReadRecord> read_record(std::string_view annotation);

// What it says about `node` of `cluster` ("" = not known) at `now`; unusable is kRecordUnavailable.
// `is_only`: nobody else can be asked. Pure, as read_record().
QueryResult judge_record(const Result<ReadRecord>& record, const std::string& cluster,
                         const std::string& node, WallTime now, bool is_only = true);

class RecordSource final : public NodeSource {
 public:
  explicit RecordSource(bool is_only) : is_only_(is_only) {}
  std::optional<QueryFailure> ask(const std::string& node, Query /*query*/, Now now) override;
  bool busy() const override { return ready_.has_value(); }
  std::optional<QueryResult> poll(Now /*now*/) override {
    return std::exchange(ready_, std::nullopt);
  }
  SteadyTime wake_at() const override { return ready_ ? ready_at_ : kNever; }
  std::vector<int> wake_fds() const override { return {}; }
  bool set_record(const std::optional<std::string>& annotation) override;
  News news(const std::string& node, WallTime now) const override;
  void set_place(const ClusterPlace& place) override;
  std::string name() const override { return "slurmlet-operator"; }
  SourceCounters counters() const override { return {}; }
  bool is_free() const override { return true; }

 private:
  bool is_only_;
  std::string cluster_;
  std::optional<std::string> annotation_;  // nothing: the Node has not been read
  Result<ReadRecord> record_ = Error{Code::kNotFound, "this machine's Node has not been read yet"};
  bool changed_ = false;  // or is to be judged by another cluster, since ask()
  std::string asked_;     // the node
  std::optional<QueryResult> ready_;
  SteadyTime ready_at_{};
};

}  // namespace slurmlet::slurm
