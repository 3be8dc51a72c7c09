#include "status/service_report.h"

#include <utility>

#include "base/log.h"
#include "status/state_line.h"

namespace slurmlet::status {
namespace {

constexpr std::size_t kChangesPerMinute = 3;
constexpr Duration kMinute = std::chrono::minutes{1};

}  // namespace

ServiceReport::ServiceReport(Notifier notifier, std::optional<Duration> watchdog,
                             std::vector<int> sockets)
    : notifier_(std::move(notifier)),
      sockets_(std::move(sockets)),
      watched_(watchdog.has_value()),
      watchdog_(watchdog) {}

// Logging may be slow, and the thread that renews the Lease must not wait for it.
ServiceReport::Lock::~Lock() {
  const std::string line = std::exchange(report_.to_log_, "");
  report_.mutex_.unlock();
  if (!line.empty()) {
    log::warning(line);
  }
}

void ServiceReport::ready(Now now) {
  const Lock lock(*this);
  watchdog_.works(Loop::kMain, now.steady);
  ready_ = true;
  watchdog_.pinged(now.steady);  // the manager starts its timer with READY=1
  if (owes_ready_ && send(kReadyLine)) {
    owes_ready_ = false;
  }
}

void ServiceReport::waiting(const std::string& text) {
  const Lock lock(*this);
  send(kReadyLine + status_line(text) + kWatchdogLine);
}

void ServiceReport::stopping() {
  const Lock lock(*this);
  send(kStoppingLine);
}

void ServiceReport::failing(const std::string& reason) {
  const Lock lock(*this);
  send(status_line(reason.substr(0, reason.find('\n'))));
}

void ServiceReport::works(Loop loop, Now now) {
  const Lock lock(*this);
  watchdog_.works(loop, now.steady);
  if (ready_ && watchdog_.is_due(now.steady, now.steady) && send(kWatchdogLine)) {
    watchdog_.pinged(now.steady);
  }
}

void ServiceReport::ended(Loop loop) {
  const Lock lock(*this);
  watchdog_.ended(loop);
}

void ServiceReport::sleeps(Loop loop, Now now, SteadyTime until, const Report& report,
                           const sync::LeaseStatus& lease) {
  const Lock lock(*this);
  watchdog_.sleeps(loop, until);
  if (!notifier_.is_heard()) {
    return;
  }
  const bool ping = watchdog_.is_due(now.steady, until);
  std::string text = state_text(report, lease);
  const bool changed = text != sent_text_;
  const bool sends_change = changed && may_send_change(now.steady);
  const bool owes_ready = ready_ && owes_ready_;
  if (!ping && !sends_change && !owes_ready) {
    return;
  }
  std::string lines = owes_ready ? kReadyLine : "";
  const bool alive = watched_ && watchdog_.alive(now.steady);
  if (alive) {
    lines += kWatchdogLine;
  }
  // Without pings the time of the last renewal would become outdated.
  lines += status_line(watched_ ? state_line(report, lease) : text);
  if (changed) {
    changes_.push_back(now.steady);
  }
  if (!send(lines)) {
    return;
  }
  sent_text_ = std::move(text);
  owes_ready_ = owes_ready_ && !owes_ready;
  if (alive) {
    watchdog_.pinged(now.steady);
  }
}

bool ServiceReport::may_send_change(SteadyTime now) {
  while (!changes_.empty() && now - changes_.front() >= kMinute) {
    changes_.pop_front();
  }
  return changes_.size() < kChangesPerMinute;
}

bool ServiceReport::send(const std::string& lines) {
  const Status sent = notifier_.send(lines);
  if (!sent && !send_failed_) {
    to_log_ = sent.error().message;
  }
  send_failed_ = !sent;
  return static_cast<bool>(sent);
}

}  // namespace slurmlet::status
