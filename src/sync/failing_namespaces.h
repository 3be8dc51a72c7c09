#pragma once

// Whom to try first while the API server asks for pauses: a webhook or a quota may fail the calls
// of one namespace for good, and each of its pauses holds up all. So the namespaces whose calls
// failed come last, and among equals what has waited longest comes first: nothing starves.
// Pure; not thread-safe.

#include <map>
#include <string>

#include "base/clock.h"

namespace slurmlet::sync {

class FailingNamespaces {
 public:
  void failed(const std::string& name, SteadyTime now) { failed_at_[name] = now; }
  void worked(const std::string& name) { failed_at_.erase(name); }
  void forget_all() { failed_at_.clear(); }

  // Whether what is due at `a_due` in namespace `a` goes before what is due at `b_due` in `b`.
  bool before(const std::string& a, SteadyTime a_due, const std::string& b,
              SteadyTime b_due) const {
    const SteadyTime a_failed = failed_at(a);
    const SteadyTime b_failed = failed_at(b);
    return a_failed != b_failed ? a_failed < b_failed : a_due < b_due;
  }

 private:
  SteadyTime failed_at(const std::string& name) const {
    const auto found = failed_at_.find(name);
    return found == failed_at_.end() ? SteadyTime::min() : found->second;
  }

  std::map<std::string, SteadyTime> failed_at_;  // no entry: its last call worked, if any
};

}  // namespace slurmlet::sync
