#pragma once

// Writes records to Nodes: so many a second, in the order of their urgency (rules/record_rules.h)
// and then as they came. A Node whose write hangs lets the others pass, for longer each time; what
// the API server rejects is for the next dump to want again. The text is taken
// when it is written, so what waited is as fresh as all else. A step object; its calls block. One
// thread, that of the API's client.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/delay.h"
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
                  Random random)
      : api_(api),
        read_(std::move(read)),
        may_act_(std::move(may_act)),
        clock_(clock),
        backoff_(std::chrono::milliseconds{200}, std::chrono::seconds{1}, std::chrono::seconds{30},
                 std::move(random)) {}

  // A Node that waits already keeps the higher urgency.
  void want(const std::string& node, Urgency urgency);
  void forget(const std::string& node);  // it has gone
  void forget_all();
  std::size_t waiting() const { return places_.size(); }
  // `written` is called for each Node that was written.
  SteadyTime step(SteadyTime now, const std::function<void(const std::string&)>& written);

  std::uint64_t writes() const { return writes_; }
  std::uint64_t failures() const { return failures_; }
  const std::string& problem() const { return problem_; }  // of the last write; "" = none
  const std::string& last_failure() const { return last_failure_; }

 private:
  // A Node that could not be written.
  struct Trouble {
    SteadyTime until{};  // not tried before
    Duration pause{};
    std::uint64_t writes = 0;  // of other Nodes, until then
  };
  struct Place {
    Urgency urgency;
    std::uint64_t number;  // of the same urgency, whoever came first is first
    auto operator<=>(const Place&) const = default;
  };
  SteadyTime due() const;
  const std::string* next_node(SteadyTime now) const;
  void drop(const std::string& node);
  void put_off(const std::string& node);
  bool write_next(SteadyTime now, const std::function<void(const std::string&)>& written);

  kube::SiteApi& api_;
  Read read_;
  std::function<bool()> may_act_;
  const Clock& clock_;
  Backoff backoff_;
  std::map<std::string, Place> places_;  // of Nodes that wait
  std::map<Place, std::string> queue_;
  std::uint64_t places_given_ = 0;
  std::map<std::string, Trouble> troubled_;  // each of them waits
  SteadyTime next_{};
  std::uint64_t writes_ = 0, failures_ = 0;
  std::string problem_, last_failure_, failed_;  // the Node
};

}  // namespace slurmlet::op
