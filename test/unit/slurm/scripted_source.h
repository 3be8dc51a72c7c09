#pragma once

// A NodeSource whose answers are made by the test, and a clock that runs a ControllerPoll over it.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "slurm/sources/controller_poll.h"

namespace slurmlet::slurm {

// What happened, shared between the test and the source that the poll owns.
struct AskedQueries {
  std::vector<SteadyTime> at;
  std::function<Duration()> takes = [] { return std::chrono::milliseconds{5}; };
  std::function<QueryResult()> result;
};

inline QueryResult good_result() {
  QueryResult result;
  result.record.emplace().state.base = "IDLE";
  return result;
}

inline QueryResult failed_result(node::SlurmFailure cause) {
  QueryResult result;
  result.failure = QueryFailure{cause, "so"};
  return result;
}

class ScriptedSource final : public NodeSource {
 public:
  explicit ScriptedSource(AskedQueries& asked) : asked_(asked) {}

  std::optional<QueryFailure> query(const std::string& /*node*/, Now now) override {
    EXPECT_FALSE(busy()) << "two queries at once";
    asked_.at.push_back(now.steady);
    ends_ = now.steady + asked_.takes();
    return std::nullopt;
  }
  bool busy() const override { return ends_.has_value(); }
  std::optional<QueryResult> poll(Now now) override {
    if (!ends_ || now.steady < *ends_) {
      return std::nullopt;
    }
    ends_.reset();
    return asked_.result ? asked_.result() : good_result();
  }
  SteadyTime wake_at() const override { return ends_.value_or(kNever); }
  std::vector<int> wake_fds() const override { return {}; }
  void set_place(const ClusterPlace& /*place*/) override {}

 private:
  AskedQueries& asked_;
  std::optional<SteadyTime> ends_;
};

}  // namespace slurmlet::slurm
