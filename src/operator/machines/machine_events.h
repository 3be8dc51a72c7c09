#pragma once

// Reports on a Machine by a log line and by Events on it and on its Node; repeats Events only after
// a while. Not thread-safe.

#include <map>
#include <string>

#include "operator/machines/machine_place.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

struct EventReason {
  const char* name;
  bool warning;  // the type; else Normal
};

inline constexpr EventReason kDryRun{"DryRun", false};

class MachineEvents {
 public:
  MachineEvents(sync::EventSink& node_events, sync::EventSink& machine_events)
      : node_events_(node_events), machine_events_(machine_events) {}

  // `job`: the job concerned; "" = the Machine itself.
  void report(const kube::Machine& machine, const MachinePlace& place, const EventReason& reason,
              const std::string& message, Now now, const std::string& job = "");
  void forget_all() { reported_.clear(); }
  // Forgets Machines that are not in `machines`.
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
