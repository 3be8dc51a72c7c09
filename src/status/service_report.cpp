#include "status/service_report.h"

#include <utility>

#include "base/log.h"
#include "status/state_line.h"

namespace slurmlet::status {
namespace {

constexpr std::size_t kNewsPerMinute = 3;
constexpr Duration kMinute = std::chrono::minutes{1};

}  // namespace

ServiceReport::ServiceReport(Notifier notifier, std::optional<Duration> watchdog,
                             std::vector<int> sockets)
    : notifier_(std::move(notifier)),
      sockets_(std::move(sockets)),
      watched_(watchdog.has_value()),
      watchdog_(watchdog) {}

// Whoever reads our log may be slow, and the thread that renews the lease must not wait for that.
ServiceReport::Turn::~Turn() {
  const std::string line = std::exchange(report_.to_log_, "");
  report_.mutex_.unlock();
  if (!line.empty()) {
    log::warning(line);
  }
}

void ServiceReport::ready(Now now) {
  const Turn turn(*this);
  watchdog_.works(Loop::kMain, now.steady);
  ready_ = true;
  watchdog_.pinged(now.steady);  // the manager's time begins with READY=1
  if (owes_ready_ && send(kReadyLine)) {
    owes_ready_ = false;
  }
}

void ServiceReport::stopping() {
  const Turn turn(*this);
  send(kStoppingLine);
}

void ServiceReport::failing(const std::string& reason) {
  const Turn turn(*this);
  send(status_line(reason.substr(0, reason.find('\n'))));
}

void ServiceReport::works(Loop loop, Now now) {
  const Turn turn(*this);
  watchdog_.works(loop, now.steady);
  if (ready_ && watchdog_.is_due(now.steady, now.steady) && send(kWatchdogLine)) {
    watchdog_.pinged(now.steady);
  }
}

void ServiceReport::ended(Loop loop) {
  const Turn turn(*this);
  watchdog_.ended(loop);
}

void ServiceReport::sleeps(Loop loop, Now now, SteadyTime until, const Report& report,
                           const sync::LeaseStatus& lease) {
  const Turn turn(*this);
  watchdog_.sleeps(loop, until);
  if (!notifier_.is_heard()) {
    return;
  }
  const bool ping = watchdog_.is_due(now.steady, until);
  std::string words = state_words(report, lease);
  const bool news = words != told_;
  const bool tells_news = news && may_tell_news(now.steady);
  const bool owes_ready = ready_ && owes_ready_;
  if (!ping && !tells_news && !owes_ready) {
    return;
  }
  std::string lines = owes_ready ? kReadyLine : "";
  const bool alive = watched_ && watchdog_.alive(now.steady);
  if (alive) {
    lines += kWatchdogLine;
  }
  // The time of the last renewal would stand still where no ping carries it.
  lines += status_line(watched_ ? state_line(report, lease) : words);
  if (news) {
    news_.push_back(now.steady);
  }
  if (!send(lines)) {
    return;
  }
  told_ = std::move(words);
  owes_ready_ = owes_ready_ && !owes_ready;
  if (alive) {
    watchdog_.pinged(now.steady);
  }
}

bool ServiceReport::may_tell_news(SteadyTime now) {
  while (!news_.empty() && now - news_.front() >= kMinute) {
    news_.pop_front();
  }
  return news_.size() < kNewsPerMinute;
}

bool ServiceReport::send(const std::string& lines) {
  const Status sent = notifier_.send(lines);
  if (!sent && !unheard_) {
    to_log_ = sent.error().message;
  }
  unheard_ = !sent;
  return static_cast<bool>(sent);
}

}  // namespace slurmlet::status
