#include "credentials/credential_files.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/log.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::seconds;

constexpr std::array<Duration, 4> kTryAgain{seconds{1}, seconds{2}, seconds{4}, seconds{8}};

FileWatch::Files paths_of(const std::vector<CredentialFiles::Entry>& entries) {
  FileWatch::Files all;
  for (const auto& entry : entries) {
    all.insert(all.end(), entry.paths.begin(), entry.paths.end());
  }
  return all;
}

}  // namespace

CredentialFiles::CredentialFiles(std::vector<Entry> entries) : watch_(paths_of(entries)) {
  for (auto& entry : entries) {
    states_.emplace_back().entry = std::move(entry);
  }
}

SteadyTime CredentialFiles::step(Now now) {
  const SteadyTime at = now.steady;
  if (!next_check_) {
    next_check_ = at;
    for (auto& state : states_) {
      state.due = at;
    }
  }
  const bool is_periodic = at >= *next_check_;
  if (is_periodic || has_event()) {
    check(at, is_periodic);
  }
  if (is_periodic) {
    next_check_ = next_aligned(now, kCheckInterval);
  }
  SteadyTime next = *next_check_;
  for (auto& state : states_) {
    if (state.due && at >= *state.due) {
      reload(state, at);
    }
    next = std::min(next, state.due.value_or(kNever));
  }
  return next;
}

bool CredentialFiles::has_event() const {
  pollfd entry{watch_.fd(), POLLIN, 0};
  return watch_.fd() >= 0 && ::poll(&entry, 1, 0) > 0;
}

void CredentialFiles::check(SteadyTime now, bool is_periodic) {
  const auto changed = watch_.changed();
  if (auto problem = watch_.problem(); problem.empty() != problem_.empty()) {
    if (problem.empty()) {
      log::info("the credential files answer again");
    } else {
      log::warning("credential files: " + problem + "; the old ones stay in use");
    }
    problem_ = std::move(problem);
  }
  const auto is_changed = [&](const std::filesystem::path& path) {
    return std::find(changed.begin(), changed.end(), path) != changed.end();
  };
  for (auto& state : states_) {
    const auto& paths = state.entry.paths;
    if (std::any_of(paths.begin(), paths.end(), is_changed)) {
      state.unrest_since = state.unrest_since.value_or(now);
      state.due = std::min(now + kQuiet, *state.unrest_since + kLongestUnrest);
      state.replaced = state.reads_old = true;
      state.failures = 0;
    } else if (is_periodic && !(state.logged.empty() && problem_.empty()) && !state.due) {
      state.due = now;
    }
  }
}

void CredentialFiles::reload(State& state, SteadyTime now) {
  state.due.reset();
  state.unrest_since.reset();
  const auto& [paths, read, what] = state.entry;
  if (state.reads_old) {
    (void)state.reading.take();
  }
  state.reads_old = state.reads_old && state.reading.busy();
  const auto use = state.reads_old
                       ? Error{Code::kTimeout, state.reading.file() + " does not answer"}
                       : in_time(state.reading, read);
  if (const Status done = use ? (*use)() : use.error(); !done) {
    ++failures_;
    if (state.logged.insert(done.error().message).second) {
      log::warning(
          fmt::format("{}: {}{}; the old one stays in use", what,
                      state.reading.busy() ? "" : "new file rejected: ", done.error().message));
    }
    if (state.failures < kTryAgain.size()) {
      state.due = now + kTryAgain[state.failures++];
    }
    return;
  }
  if (state.replaced || !state.logged.empty()) {
    log::info(what + " was replaced and is in use");
  }
  state.replaced = false;
  state.failures = 0;
  state.logged.clear();
}

}  // namespace slurmlet::credentials
