#pragma once

// Writes records to Nodes at a limited rate, by urgency (rules/record_rules.h) and then first come,
// first served. A Node whose write hangs backs off, so that it does not delay the others; a
// rejected write is left to the next dump. The text is read right before the write, so it is always
// current. A step object; its calls block. One thread, that of the API's client.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/delay.h"
#include "base/keyed_backoff.h"
#include "kube/api.h"
#include "operator/rules/record_rules.h"

namespace slurmlet::op {

class RecordPublisher {
 public:
  // As many writes to Nodes as ten thousand daemons make themselves.
  static constexpr int kWritesPerSecond = 50;
  // The Node's current annotation and uid; "" = it has none any more.
  struct Text {
    std::string uid, annotation;
  };
  using Read = std::function<Text(const std::string& node)>;

  // `may_act` is checked before each write, since the lead may end during a slow call.
  RecordPublisher(kube::SiteApi& api, Read read, std::function<bool()> may_act, const Clock& clock,
                  Random random);

  // A Node that is waiting keeps the higher urgency.
  void want(const std::string& node, Urgency urgency);
  void forget(const std::string& node);  // for a deleted Node
  void forget_all();
  std::size_t waiting() const { return waiting_.size(); }
  // Calls `written` after each successful write.
  SteadyTime step(SteadyTime now, const std::function<void(const std::string&)>& written);

  std::uint64_t writes() const { return writes_; }
  std::uint64_t failures() const { return failures_; }
  const std::string& problem() const { return problem_; }  // "" = the last write succeeded
  const std::string& last_failure() const { return last_failure_; }

 private:
  struct Waiting {
    Urgency urgency;
    std::uint64_t number;  // order of arrival
  };
  SteadyTime due() const;
  std::vector<std::string> next_nodes(SteadyTime now) const;
  void write(const std::string& node, const std::function<void(const std::string&)>& written);

  kube::SiteApi& api_;
  Read read_;
  std::function<bool()> may_act_;
  const Clock& clock_;
  Backoff backoff_;      // for all Nodes
  KeyedBackoff failed_;  // for each Node
  std::map<std::string, Waiting> waiting_;
  std::uint64_t arrivals_ = 0;
  SteadyTime next_{};
  std::uint64_t writes_ = 0, failures_ = 0;
  std::string problem_, last_failure_, failed_node_;
};

}  // namespace slurmlet::op
