#include "slurm/sources/auto_source.h"

#include <utility>

#include "node/slurm_failure.h"

namespace slurmlet::slurm {
namespace {

bool lies_in_the_source(const QueryFailure& failure) {
  return node::kind_of(failure.cause).has(node::kOfSource);
}

}  // namespace

// The one in use first, or the preferred one when it is its turn again.
std::vector<std::size_t> AutoSource::order(Now now) const {
  const bool turn = now.steady >= try_preferred_at_ || news(node_, now.wall) == News::kAnswer;
  const std::size_t first = turn ? 0 : current_;
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
  left_ = order(now);
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
    if (!lies_in_the_source(*failure)) {
      return failure;
    }
    note(source, *failure, now.steady);
    if (source == current_ && sources_[source]->is_free() && !left_.empty()) {
      // Each node asks the next source at a time of its own: is_free() is no more.
      use(left_.front());
      return failure;
    }
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
    if (!result->failure || !lies_in_the_source(*result->failure)) {
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
    try_preferred_at_ = now + delay(Delay::kPreferAgain, random_);
  }
}

void AutoSource::use(std::size_t source) {
  if (source == current_) {
    return;
  }
  const std::string now = sources_[source]->name();
  const auto why = failed_.find(current_);
  if (why == failed_.end()) {
    tell_(false, "uses " + now);
  } else {
    tell_(true,
          "uses " + now + " instead of " + sources_[current_]->name() + ": " + why->second.detail);
  }
  current_ = source;
}

// In the order of preference whoever was asked first, so that the words stay the same. That there
// is no record is no failure where no operator ever wrote one.
QueryFailure AutoSource::all_failed() const {
  auto first = failed_.begin();
  if (failed_.size() > 1 && !has_record_ &&
      first->second.cause == node::SlurmFailure::kRecordUnavailable) {
    ++first;
  }
  QueryFailure all = first->second;
  for (auto next = std::next(first); next != failed_.end(); ++next) {
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

bool AutoSource::set_record(const std::optional<std::string>& annotation) {
  bool is_new = false;
  has_record_ = annotation ? !annotation->empty() : has_record_;
  for (const auto& source : sources_) {
    is_new |= source->set_record(annotation);
  }
  return is_new;
}

// An unusable record is nothing to a source that is in use in its place.
News AutoSource::news(const std::string& node, WallTime now) const {
  const News first = sources_.front()->news(node, now);
  return current_ == 0 || first == News::kAnswer ? first : News::kNone;
}

SourceCounters AutoSource::counters() const {
  SourceCounters sum;
  for (const auto& source : sources_) {
    const SourceCounters own = source->counters();
    sum.commands += own.commands;
    sum.requests += own.requests;
    sum.full_queries += own.full_queries;
  }
  return sum;
}

}  // namespace slurmlet::slurm
