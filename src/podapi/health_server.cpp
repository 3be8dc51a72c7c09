#include "podapi/health_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/file.h"
#include "podapi/connection.h"

namespace slurmlet::podapi {
namespace {

// The deepest path measured (cpp-httplib 0.11.4, a metrics answer) needs less than 64 KiB; glibc
// also keeps thread-local storage there.
constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr int kBacklog = 16;
constexpr int kOutOfDescriptorsPauseMs = 200;

constexpr const char* kTooLongAnswer =
    "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: "
    "0\r\n\r\n";

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return address;
}

Error bind_error(int error_number, int port) {
  if (error_number == EADDRINUSE) {
    return {Code::kConflict,
            fmt::format("127.0.0.1:{} is taken by another program (a kubelet?). Choose another "
                        "port with --healthz-port, or turn the health endpoint off with "
                        "--healthz-port 0",
                        port)};
  }
  return errno_error(error_number,
                     fmt::format("listen on 127.0.0.1:{} (--healthz-port 0 turns it off)", port));
}

}  // namespace

HealthServer::HealthServer(HealthServerOptions options, std::function<Snapshot()> snapshot)
    : options_(options), answerer_([snapshot = std::move(snapshot)](const Request& request) {
        return handle(request, snapshot());
      }) {}

HealthServer::~HealthServer() { stop(); }

Status HealthServer::listen() {
  UniqueFd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!listener) {
    return errno_error(errno, "socket");
  }
  // A restart must not wait for connections of before to leave TIME_WAIT.
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = loopback(options_.port);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), generic, length) != 0 || ::listen(listener.get(), kBacklog) != 0 ||
      ::getsockname(listener.get(), generic, &length) != 0) {
    return bind_error(errno, options_.port);
  }
  port_ = ntohs(address.sin_port);
  listener_ = std::move(listener);
  return {};
}

Status HealthServer::start() {
  if (listener_) {
    return Error{Code::kInternal, "the health server is already running"};
  }
  if (options_.port < 0 || options_.port > 65535) {
    return Error{
        Code::kInvalid,
        fmt::format("--healthz-port {} is not a port (1 to 65535, 0 for off)", options_.port)};
  }
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_) {
    return errno_error(errno, "eventfd");
  }
  if (auto listening = listen(); !listening) {
    return listening;
  }
  for (int i = 0; i < options_.threads; ++i) {
    if (auto started = start_thread(); !started) {
      stop();
      return started;
    }
  }
  return {};
}

Status HealthServer::start_thread() {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  // Signals belong to the main thread: the new one starts with all of them blocked.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  const int error = ::pthread_create(&thread, &attributes, &HealthServer::run_thread, this);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error != 0) {
    return errno_error(error, "start a thread of the health server");
  }
  ::pthread_setname_np(thread, "healthz");
  threads_.push_back(thread);
  return {};
}

void HealthServer::stop() {
  if (stop_) {
    const std::uint64_t one = 1;
    // Cannot fail: the counter is far from its limit.
    [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  }
  for (const pthread_t thread : threads_) {
    ::pthread_join(thread, nullptr);
  }
  threads_.clear();
  listener_.reset();
  stop_.reset();
}

void* HealthServer::run_thread(void* server) {
  static_cast<HealthServer*>(server)->serve();
  return nullptr;
}

void HealthServer::serve() {
  std::array<pollfd, 2> waiting{{{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
  while (true) {
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) {
      return;
    }
    if (waiting[1].revents != 0) {
      return;
    }
    UniqueFd socket{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (socket) {
      serve_one(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The connection stays in the queue, so poll() would return at once, again and again.
      ::poll(&waiting[1], 1, kOutOfDescriptorsPauseMs);
    }
  }
}

void HealthServer::serve_one(UniqueFd socket) {
  Connection connection{std::move(socket), stop_.get(),
                        std::chrono::steady_clock::now() + options_.time_limit};
  const auto head = connection.read_head(options_.max_request_bytes);
  if (head.outcome == Connection::Outcome::kComplete) {
    connection.send_and_finish(answerer_.answer(head.text));
  } else if (head.outcome == Connection::Outcome::kTooLong) {
    connection.send_and_finish(kTooLongAnswer);
  }
}

}  // namespace slurmlet::podapi
