#include "daemon/detach_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace slurmlet::daemon {

DetachFile::DetachFile(const std::string& directory) {
  if (!directory.empty()) {
    path_ = directory + "/detached";
  }
}

void DetachFile::set(std::optional<bool> detached) {
  std::error_code ignored;
  if (!detached || path_.empty()) {
    return;
  }
  if (*detached == std::filesystem::exists(path_, ignored)) {
    problem_.clear();
    return;
  }
  Status done;
  if (*detached) {
    done = write_file_atomic(path_, "", 0644);
  } else {
    std::error_code error;
    std::filesystem::remove(path_, error);
    done = error ? Status{errno_error(error.value(), "remove " + path_)} : Status{};
  }
  const std::string before = std::exchange(problem_, done ? "" : done.error().message);
  if (!done) {  // tried each time, logged once
    if (problem_ != before) {
      log::warning(problem_);
    }
    return;
  }
  if (*detached) {
    log::info("slurmlet-operator has taken this machine out of Slurm: " + path_ +
              " is written; slurmlet-detach.path stops slurmd, where it is enabled");
  } else {
    log::info("this machine belongs to Slurm again: " + path_ + " is removed");
  }
}

}  // namespace slurmlet::daemon
