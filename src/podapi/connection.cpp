#include "podapi/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

namespace slurmlet::podapi {
namespace {

// Whether `text` holds the empty line that ends a request's head; the bytes before `from` are known
// not to.
bool has_empty_line(const std::string& text, std::size_t from) {
  const std::size_t start = from < 3 ? 0 : from - 3;
  return text.find("\r\n\r\n", start) != std::string::npos ||
         text.find("\n\n", start) != std::string::npos;
}

}  // namespace

bool Connection::wait_for(short events) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return false;
    }
    std::array<pollfd, 2> waiting{{{socket_.get(), events, 0}, {stop_fd_, POLLIN, 0}}};
    const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) {
      return false;
    }
    if (ready > 0) {
      return waiting[1].revents == 0;
    }
  }
}

Connection::Head Connection::read_head(std::size_t max_bytes) {
  Head head;
  std::array<char, 2048> buffer{};
  while (wait_for(POLLIN)) {
    const ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (n <= 0) {
      return head;
    }
    const std::size_t before = head.text.size();
    head.text.append(buffer.data(), static_cast<std::size_t>(n));
    if (has_empty_line(head.text, before)) {
      head.outcome = Outcome::kComplete;
      return head;
    }
    if (head.text.size() > max_bytes) {
      head.outcome = Outcome::kTooLong;
      return head;
    }
  }
  return head;
}

void Connection::send_and_finish(std::string_view answer) {
  while (!answer.empty() && wait_for(POLLOUT)) {
    const ssize_t n = ::send(socket_.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (n < 0) {
      return;
    }
    answer.remove_prefix(static_cast<std::size_t>(n));
  }
  ::shutdown(socket_.get(), SHUT_WR);
  // What the client sent beyond the head (a body) is read away, so that closing does not reset the
  // connection under the answer; a client that sends more than this gets the reset.
  std::array<char, 4096> buffer{};
  for (int i = 0; i < 16 && ::recv(socket_.get(), buffer.data(), buffer.size(), 0) > 0; ++i) {
  }
}

}  // namespace slurmlet::podapi
