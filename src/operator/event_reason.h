#pragma once

namespace slurmlet::op {

struct EventReason {  // of an Event
  const char* name;
  bool warning;  // its type; else Normal
};

inline constexpr EventReason kDryRun{"DryRun", false};

}  // namespace slurmlet::op
