#pragma once

// When and what is written of one Node: what differs from the desired one, and a report every few
// minutes. Gone with its Node, so nothing of an earlier one has to be forgotten.
//
// What does not stay as it was written (another client changes it back, the API server alters or
// rejects it) is written again at growing intervals, a minute at most, so nobody can make the
// daemon write more often. A change of our own waits for no such interval.
//
// Not thread-safe.

#include <algorithm>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/delay.h"
#include "base/result.h"
#include "node/node.h"
#include "node/node_diff.h"

namespace slurmlet::sync {

class NodeWriter {
 public:
  NodeWriter(std::string name, Duration report_interval, Random random, SteadyTime now);

  void desired_changed() {
    acknowledged_ = false;
    observed_changed();
  }
  void observed_changed() {
    compared_ = false;
    write_at_ = {};
  }
  // What to write now, if anything. `spread`: the window over which the nodes of a site write a
  // change common to all.
  std::optional<node::NodePatch> due(const node::ObservedNode& observed,
                                     const node::DesiredNode& desired, Duration spread, Now now);
  // `patch` was written, and the API server answered with the Node.
  void written(const node::NodePatch& patch, const node::ObservedNode& answer,
               const node::DesiredNode& desired, Now now);
  SteadyTime next() const { return compared_ ? report_at_ : std::min(write_at_, report_at_); }
  // Why the Node differs from the desired one although it can be written; "" = it does not, or not
  // for long.
  std::string drift(SteadyTime now) const;

 private:
  bool is_quiet(SteadyTime now) const;
  std::string drift_message() const;

  std::string name_;
  Duration report_interval_;
  Random random_;
  Backoff backoff_;  // something is not kept
  SteadyTime not_before_{};
  SteadyTime report_at_;
  SteadyTime write_at_{};                       // what differs
  std::optional<SteadyTime> flush_not_before_;  // this node's turn within the site
  std::string drift_;                           // what was not kept: "the label type"
  bool compared_ = false;                       // found equal since either side changed
  bool acknowledged_ = false;                   // the desired Node has been on the API server
  bool drifts_ = false;                         // and is no longer
  bool altered_by_server_ = false;              // by its answer to the last write
};

// When spec.providerID is set where a Node has none. One that is rejected, or not answered, keeps
// nothing else from being written. Gone with its Node.
class ProviderIdWriter {
 public:
  explicit ProviderIdWriter(Random random);

  // kNever where there is nothing to set.
  SteadyTime due(const node::ObservedNode& observed, const std::string& provider_id) const;
  // Whether the failure is that of the providerID alone.
  bool failed(const Error& error, const std::string& node, SteadyTime now);
  void try_by(SteadyTime time) { not_before_ = std::min(not_before_, time); }
  std::string drift(const node::ObservedNode& observed, const std::string& provider_id) const;

 private:
  Backoff backoff_;
  SteadyTime not_before_{};
  std::string rejected_;  // why
};

}  // namespace slurmlet::sync
