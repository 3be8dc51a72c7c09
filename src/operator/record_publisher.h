#pragma once

// Writes records to Nodes: so many a second, in the order of their urgency (rules/record_rules.h)
// and then as they came. A Node whose write hangs lets the others pass, for longer each time; what
// the API server rejects is for the next dump to want again. The text is taken when it is written,
// so what waited is as fresh as all else. A step object; its calls block. One thread, that of the
// API's client.

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
  // Of Nodes, on the API server: as many as ten thousand daemons write by themselves.
  static constexpr int kWritesPerSecond = 50;
  // The annotation of this Node now, with its uid; "" where there is none any more.
  struct Text {
    std::string uid, annotation;
  };
  using Read = std::function<Text(const std::string& node)>;

  // `may_act` is asked before each write: a call may take long, and the lead end meanwhile.
  RecordPublisher(kube::SiteApi& api, Read read, std::function<bool()> may_act, const Clock& clock,
                  Random random);

  // A Node that waits already keeps the higher urgency.
  void want(const std::string& node, Urgency urgency);
  void forget(const std::string& node);  // it has gone
  void forget_all();
  std::size_t waiting() const { return waiting_.size(); }
  // `written` is called for each Node that was written.
  SteadyTime step(SteadyTime now, const std::function<void(const std::string&)>& written);

  std::uint64_t writes() const { return writes_; }
  std::uint64_t failures() const { return failures_; }
  const std::string& problem() const { return problem_; }  // of the last write; "" = none
  const std::string& last_failure() const { return last_failure_; }

 private:
  struct Waiting {
    Urgency urgency;
    std::uint64_t number;  // of the same urgency, whoever came first is first
  };
  SteadyTime due() const;
  std::vector<std::string> next_nodes(SteadyTime now) const;
  void write(const std::string& node, const std::function<void(const std::string&)>& written);

  kube::SiteApi& api_;
  Read read_;
  std::function<bool()> may_act_;
  const Clock& clock_;
  Backoff backoff_;      // of all
  KeyedBackoff failed_;  // of one
  std::map<std::string, Waiting> waiting_;
  std::uint64_t came_ = 0;
  SteadyTime next_{};
  std::uint64_t writes_ = 0, failures_ = 0;
  std::string problem_, last_failure_, failed_node_;
};

}  // namespace slurmlet::op
