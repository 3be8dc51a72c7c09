#pragma once

// Events and log lines on what happens to the Node. Not thread-safe.

#include <string>
#include <vector>

#include "base/clock.h"
#include "node/node.h"
#include "sync/event_sink.h"

namespace slurmlet::sync {

class NodeAnnouncer {
 public:
  explicit NodeAnnouncer(EventSink& events) : events_(events) {}

  void set_cluster(std::string cluster) { cluster_ = std::move(cluster); }
  void set_delay(Duration delay) { events_.set_delay(delay); }
  // For a registered Node: what changed since the last announcement.
  void conditions(const node::DesiredNode& desired, const std::string& uid, Now now);
  void created(const node::DesiredNode& desired, const std::string& uid, Now now);
  void adopted(const node::ObservedNode& node, const node::DesiredNode& desired, Now now);

 private:
  void remember(const node::DesiredNode& desired);
  void emit(const std::string& node, const std::string& uid, bool warning,
            const std::string& reason, const std::string& message, Now now);

  EventSink& events_;
  std::string cluster_;                     // Slurm's
  std::vector<node::Condition> announced_;  // conditions that events were made of
  bool was_registered_ = false;             // in this process
};

}  // namespace slurmlet::sync
