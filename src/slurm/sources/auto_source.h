#pragma once

// Several sources in order of preference behind one face. One that fails for a reason of its own
// (not installed, not reachable, its token refused) lets the next one answer the same question,
// which has cost slurmctld nothing so far, and later questions go to that one; the preferred one is
// tried again every ten minutes. What lies with slurmctld or with the node is an answer like any
// other and changes nothing. Not thread-safe.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "slurm/sources/node_source.h"

namespace slurmlet::slurm {

class AutoSource final : public NodeSource {
 public:
  static constexpr Duration kTryPreferred = std::chrono::minutes{10};
  // Told of each change of the source in use, in a sentence.
  using Tell = std::function<void(const std::string&)>;

  // `sources` must not be empty.
  AutoSource(std::vector<std::unique_ptr<NodeSource>> sources, Tell tell)
      : sources_(std::move(sources)), tell_(std::move(tell)) {}

  std::optional<QueryFailure> ask(const std::string& node, Query query, Now now) override;
  bool busy() const override { return under_way_.has_value(); }
  std::optional<QueryResult> poll(Now now) override;
  SteadyTime wake_at() const override;
  std::vector<int> wake_fds() const override;
  // That of the source in use, as is_free().
  std::string name() const override { return sources_[current_]->name(); }
  // The sum.
  SourceCounters counters() const override;
  void set_place(const ClusterPlace& place) override;
  bool is_free() const override { return sources_[current_]->is_free(); }

 private:
  std::vector<std::size_t> order(SteadyTime now) const;
  std::optional<QueryFailure> ask_next(Now now);
  void note(std::size_t source, const QueryFailure& failure, SteadyTime now);
  void use(std::size_t source);
  QueryFailure all_failed() const;

  std::vector<std::unique_ptr<NodeSource>> sources_;
  Tell tell_;
  std::size_t current_ = 0;
  SteadyTime try_preferred_at_{};

  // Of the question under way.
  std::string node_;
  Query query_ = Query::kOneNode;
  std::vector<std::size_t> left_;  // to be asked, the next one first
  std::optional<std::size_t> under_way_;
  std::map<std::size_t, QueryFailure> failed_;
};

// Whether another source may do better: the cause lies in this one, not in slurmctld.
bool lies_in_the_source(node::SlurmFailure cause);

}  // namespace slurmlet::slurm
