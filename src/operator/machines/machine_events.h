#pragma once

// What is said of a Machine: an Event on it and on its Node, and a line in the log. The same again
// only after a while. Not thread-safe.

#include <map>
#include <string>

#include "operator/machines/machine_place.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

struct EventReason {  // of an Event
  const char* name;
  bool warning;  // its type; else Normal
};

inline constexpr EventReason kDryRun{"DryRun", false};

class MachineEvents {
 public:
  MachineEvents(sync::EventSink& node_events, sync::EventSink& machine_events)
      : node_events_(node_events), machine_events_(machine_events) {}

  // `job`: that it is about, "" = the Machine.
  void report(const kube::Machine& machine, const MachinePlace& place, const EventReason& reason,
              const std::string& message, Now now, const std::string& job = "");
  void forget_all() { reported_.clear(); }
  // Of Machines that have gone.
  void retain(const Machines& machines);

 private:
  struct Reported {
    std::string message;
    SteadyTime at;
  };
  sync::EventSink& node_events_;
  sync::EventSink& machine_events_;                                  // on the Machines' server
  std::map<std::string, std::map<std::string, Reported>> reported_;  // by Machine, then job
};

}  // namespace slurmlet::op
