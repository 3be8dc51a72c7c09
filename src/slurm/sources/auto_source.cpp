#include "slurm/sources/auto_source.h"

#include <algorithm>
#include <utility>

namespace slurmlet::slurm {

bool lies_in_the_source(node::SlurmFailure cause) {
  switch (cause) {
    case node::SlurmFailure::kCommandMissing:
    case node::SlurmFailure::kRestUnavailable:
    case node::SlurmFailure::kTokenRefused:
    case node::SlurmFailure::kFeedUnavailable:
    case node::SlurmFailure::kBadConfiguration:
      return true;
    default:
      return false;
  }
}

// The one in use first, or the preferred one when it is its turn again.
std::vector<std::size_t> AutoSource::order(SteadyTime now) const {
  const std::size_t first = now >= try_preferred_at_ ? 0 : current_;
  std::vector<std::size_t> all{first};
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (i != first) {
      all.push_back(i);
    }
  }
  return all;
}

std::optional<QueryFailure> AutoSource::ask(const std::string& node, Query query, Now now) {
  node_ = node;
  query_ = query;
  left_ = order(now.steady);
  failed_.clear();
  return ask_next(now);
}

// The failure when none is left, or one that is the question's and not the source's.
std::optional<QueryFailure> AutoSource::ask_next(Now now) {
  while (!left_.empty()) {
    const std::size_t source = left_.front();
    left_.erase(left_.begin());
    auto failure = sources_[source]->ask(node_, query_, now);
    if (!failure) {
      under_way_ = source;
      return std::nullopt;
    }
    if (!lies_in_the_source(failure->cause)) {
      return failure;
    }
    note(source, *failure, now.steady);
  }
  return all_failed();
}

std::optional<QueryResult> AutoSource::poll(Now now) {
  while (under_way_) {
    const std::size_t source = *under_way_;
    auto result = sources_[source]->poll(now);
    if (!result) {
      return std::nullopt;
    }
    under_way_.reset();
    if (!result->failure || !lies_in_the_source(result->failure->cause)) {
      use(source);
      return result;
    }
    note(source, *result->failure, now.steady);
    if (auto failure = ask_next(now)) {
      return QueryResult{std::nullopt, std::move(failure), std::nullopt};
    }
  }
  return std::nullopt;
}

void AutoSource::note(std::size_t source, const QueryFailure& failure, SteadyTime now) {
  failed_.emplace(source, failure);
  if (source == 0) {
    try_preferred_at_ = now + kTryPreferred;
  }
}

void AutoSource::use(std::size_t source) {
  if (source == current_) {
    return;
  }
  const std::string now = sources_[source]->name();
  const auto why = failed_.find(current_);
  tell_(why == failed_.end() ? "queries " + now + " again"
                             : "queries " + now + " instead of " + sources_[current_]->name() +
                                   ": " + why->second.detail);
  current_ = source;
}

// In the order of preference whoever was asked first, so that the words stay the same.
QueryFailure AutoSource::all_failed() const {
  QueryFailure all = failed_.begin()->second;
  for (auto next = std::next(failed_.begin()); next != failed_.end(); ++next) {
    all.detail += "; " + sources_[next->first]->name() + ": " + next->second.detail;
  }
  return all;
}

SteadyTime AutoSource::wake_at() const {
  return under_way_ ? sources_[*under_way_]->wake_at() : kNever;
}

std::vector<int> AutoSource::wake_fds() const {
  return under_way_ ? sources_[*under_way_]->wake_fds() : std::vector<int>{};
}

void AutoSource::set_place(const ClusterPlace& place) {
  for (const auto& source : sources_) {
    source->set_place(place);
  }
}

SourceCounters AutoSource::counters() const {
  SourceCounters sum;
  for (const auto& source : sources_) {
    const SourceCounters own = source->counters();
    sum.commands += own.commands;
    sum.requests += own.requests;
    sum.reads += own.reads;
    sum.full_queries += own.full_queries;
  }
  return sum;
}

}  // namespace slurmlet::slurm
