#pragma once

// Several sources in order of preference behind one face. One that fails for a reason of its own
// (not installed, not reachable, its token refused) lets the next one answer the same question,
// which has cost slurmctld nothing so far, and later questions go to that one; the preferred one is
// tried again after some ten minutes. A preferred source that is free (slurmlet-operator's records)
// is in use from its first news on, and again with the next; it may fail for all nodes at once, so
// that the next source is asked at the next question only. What lies with slurmctld or with the
// node is an answer like any other and changes nothing. Not thread-safe.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/delay.h"
#include "slurm/sources/node_source.h"

namespace slurmlet::slurm {

class AutoSource final : public NodeSource {
 public:
  // Told of each change of the source in use, in a sentence; whether it is one for the worse.
  using Tell = std::function<void(bool worse, const std::string&)>;

  // `sources` must not be empty.
  AutoSource(std::vector<std::unique_ptr<NodeSource>> sources, Tell tell, Random random)
      : sources_(std::move(sources)),
        tell_(std::move(tell)),
        random_(std::move(random)),
        current_(sources_.size() > 1 && sources_.front()->is_free() ? 1 : 0) {}

  std::optional<QueryFailure> ask(const std::string& node, Query query, Now now) override;
  bool busy() const override { return under_way_.has_value(); }
  std::optional<QueryResult> poll(Now now) override;
  SteadyTime wake_at() const override;
  std::vector<int> wake_fds() const override;
  // That of the source in use.
  std::string name() const override { return sources_[current_]->name(); }
  bool is_slurmrestd() const override { return sources_[current_]->is_slurmrestd(); }
  // The sum.
  SourceCounters counters() const override;
  void set_place(const ClusterPlace& place) override;
  bool set_record(const std::optional<std::string>& annotation) override;
  News news(const std::string& node, WallTime now) const override;
  bool is_free() const override { return sources_[under_way_.value_or(current_)]->is_free(); }

 private:
  std::vector<std::size_t> order(Now now) const;
  std::optional<QueryFailure> ask_next(Now now);
  void note(std::size_t source, const QueryFailure& failure, SteadyTime now);
  void use(std::size_t source);
  QueryFailure all_failed() const;

  std::vector<std::unique_ptr<NodeSource>> sources_;
  Tell tell_;
  Random random_;
  std::size_t current_;
  bool has_record_ = false;  // of the operator, usable or not
  SteadyTime try_preferred_at_{};

  // Of the question under way.
  std::string node_;
  Query query_ = Query::kOneNode;
  std::vector<std::size_t> left_;  // to be asked, the next one first
  std::optional<std::size_t> under_way_;
  std::map<std::size_t, QueryFailure> failed_;
};

}  // namespace slurmlet::slurm
