#include "http/connect_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/test_server.h"

namespace slurmlet::http {
namespace {

// Copies what is there; false at the end.
bool copy(int from, int to) {
  char buffer[16384];
  const ssize_t n = ::recv(from, buffer, sizeof buffer, 0);
  for (ssize_t done = 0; n > 0 && done < n;) {
    const ssize_t sent =
        ::send(to, buffer + done, static_cast<std::size_t>(n - done), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    done += sent;
  }
  return n > 0;
}

}  // namespace

ConnectProxy::ConnectProxy(int destination_port) : destination_port_(destination_port) {
  listener_ = listen_on_loopback(port_);
  acceptor_ = std::thread{[this] { accept_loop(); }};
}

ConnectProxy::~ConnectProxy() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (const UniqueFd& fd : fds_) {
    ::shutdown(fd.get(), SHUT_RDWR);
  }
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

std::vector<std::string> ConnectProxy::heads() const {
  const std::lock_guard lock{mutex_};
  return heads_;
}

void ConnectProxy::accept_loop() {
  while (true) {
    UniqueFd fd{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!fd) {
      return;
    }
    fds_.push_back(std::move(fd));
    workers_.emplace_back([this, raw = fds_.back().get()] { serve(raw); });
  }
}

void ConnectProxy::serve(int client) {
  std::string head;
  char c = 0;
  while (!head.ends_with("\r\n\r\n") && ::recv(client, &c, 1, 0) == 1) {
    head.push_back(c);
  }
  {
    const std::lock_guard lock{mutex_};
    heads_.push_back(head);
  }
  const UniqueFd server{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(destination_port_));
  if (::connect(server.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return;
  }
  const std::string_view answer = "HTTP/1.1 200 Connection established\r\nRetry-After: 99\r\n\r\n";
  ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
  pollfd entries[] = {{client, POLLIN, 0}, {server.get(), POLLIN, 0}};
  while (::poll(entries, 2, -1) > 0) {
    if ((entries[0].revents != 0 && !copy(client, server.get())) ||
        (entries[1].revents != 0 && !copy(server.get(), client))) {
      break;
    }
  }
  ::shutdown(client, SHUT_RDWR);
}

}  // namespace slurmlet::http
