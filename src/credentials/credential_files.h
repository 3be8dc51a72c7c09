#pragma once

// Reloads credentials that are replaced on disk while the daemon runs: waits until the files have
// been quiet (a pair is replaced one after the other), then has them read again. A replacement that
// is rejected is logged once for each reason and tried again, so that a file that was caught half
// written, or whose other half comes late, needs nobody's help. Files that hang are read aside
// (detached_task.h), and tried again like those. A loop of one thread.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/detached_task.h"
#include "base/file_watch.h"
#include "base/result.h"

namespace slurmlet::credentials {

class CredentialFiles {
 public:
  struct Entry {
    std::vector<std::filesystem::path> paths;
    // Reads them again, on a thread of its own: it owns what it uses. What it returns is called on
    // ours and puts them in use. On an Error of either the old ones stay. Called without need too,
    // so the same content must change nothing.
    using Use = std::function<Status()>;
    std::function<Result<Use>()> read;
    std::string what;  // for the log: "kubeconfig /etc/kubernetes/kubelet.conf"
  };

  static constexpr Duration kQuiet = std::chrono::milliseconds{200};
  // Files that are written to all the time are read in spite of it.
  static constexpr Duration kLongestUnrest = std::chrono::seconds{2};
  // What sends no events (a network file system) is found by reading them; also tries again what is
  // rejected, since the fix may lie in a file that no path names yet, and reads everything while
  // one of the files hangs.
  static constexpr Duration kCheckInterval = std::chrono::seconds{30};

  explicit CredentialFiles(std::vector<Entry> entries);

  // Descriptor to wait on for the next step(); -1 when the kernel gave none.
  int fd() const { return watch_.fd(); }

  // Returns when to call again if fd() is not readable before. The first call reads everything
  // again, for what was replaced before the files were watched.
  SteadyTime step(Now now);

  // How often files were rejected or did not answer.
  std::uint64_t failures() const { return failures_; }

 private:
  struct State {
    Entry entry;
    DetachedTask<Result<Entry::Use>> reading;
    std::optional<SteadyTime> due;           // for reload()
    std::optional<SteadyTime> unrest_since;  // the first change not yet read
    bool replaced = false;                   // a change was seen that is not yet in use
    bool reads_old = false;                  // the reading under way began before the last change
    unsigned failures = 0;                   // in a row, since the last change
    std::set<std::string> logged;            // reasons for rejection since the last success
  };

  bool has_event() const;
  void check(SteadyTime now, bool is_periodic);
  void reload(State& state, SteadyTime now);

  std::vector<State> states_;
  FileWatch watch_;
  std::optional<SteadyTime> next_check_;
  std::string problem_;  // as logged
  std::uint64_t failures_ = 0;
};

}  // namespace slurmlet::credentials
