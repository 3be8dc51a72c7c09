#include "podapi/port.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace slurmlet::podapi {
namespace {

using std::chrono::seconds;

// After an error that the next attempt would have too (no descriptor is free, a security module
// forbids it). Clients wait in the kernel's queue meanwhile; it is tried again sooner when a
// connection closes.
constexpr seconds kPause{1};

// Nobody waits any more, or went away while he did.
bool is_over(int error_number) {
  return error_number == EAGAIN || error_number == EINTR || error_number == ECONNABORTED;
}

// It does not listen any more: somebody ended it from outside (ss --kill).
bool is_lost(int error_number) {
  return error_number == EINVAL || error_number == EBADF || error_number == ENOTSOCK;
}

}  // namespace

Port::Port(const ServerOptions& options, int epoll, std::uint64_t mark)
    : options_(options),
      epoll_(epoll),
      mark_(mark),
      backoff_(Delay::kPortRetry, options.random ? options.random : system_random()) {}

Status Port::open() {
  const Status opened = try_open();
  if (!opened && opened.error().code != Code::kInvalid) {
    next_try_ = SteadyTime{};  // long ago: with the next step()
  }
  return opened;
}

Status Port::try_open() {
  auto listener = open_listener(options_);
  if (!listener) {
    ++failures_;
    return listener.error();
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = mark_;
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, listener->socket.get(), &event) != 0) {
    return errno_error(errno, "epoll_ctl");
  }
  listener_ = std::move(*listener);
  paused_until_ = next_try_ = kNever;
  backoff_.reset();
  return {};
}

SteadyTime Port::step(SteadyTime now) {
  if (paused_until_ <= now) {
    paused_until_ = kNever;
    watch(EPOLLIN);
  }
  if (next_try_ <= now) {
    if (try_open()) {
      log::info(fmt::format("{} {}: now listening", options_.port_flag, listener_.port));
    } else {
      next_try_ = now + backoff_.next();
    }
  }
  return std::min(paused_until_, next_try_);
}

UniqueFd Port::accept(sockaddr_storage& from, SteadyTime now) {
  if (!is_open()) {
    return {};
  }
  socklen_t size = sizeof from;
  UniqueFd socket{::accept4(listener_.socket.get(), reinterpret_cast<sockaddr*>(&from), &size,
                            SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (socket || is_over(errno)) {
    return socket;
  }
  if (is_lost(errno)) {
    lose(errno, now);
  } else {
    paused_until_ = now + kPause;
    watch(0);
  }
  return {};
}

void Port::end_pause() {
  if (paused_until_ != kNever) {
    paused_until_ = SteadyTime{};  // long ago
  }
}

void Port::watch(std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = mark_;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_.socket.get(), &event);
}

void Port::lose(int error_number, SteadyTime now) {
  log::warning(
      errno_error(error_number, fmt::format("{} {}: the socket was lost and is being reopened",
                                            options_.port_flag, listener_.port))
          .message);
  // Closing alone would not do: the service manager may hold the same socket.
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, listener_.socket.get(), nullptr);
  listener_ = {};
  paused_until_ = kNever;
  next_try_ = now + backoff_.next();
}

}  // namespace slurmlet::podapi
