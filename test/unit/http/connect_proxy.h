#pragma once

// A minimal HTTP CONNECT proxy on loopback for tests. Whatever is asked for, it connects to one
// fixed local port, and remembers what was asked.

#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace slurmlet::http {

class ConnectProxy {
 public:
  explicit ConnectProxy(int destination_port);
  ~ConnectProxy();
  ConnectProxy(const ConnectProxy&) = delete;
  ConnectProxy& operator=(const ConnectProxy&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // The heads of the CONNECT requests so far.
  std::vector<std::string> heads() const;

 private:
  void accept_loop();
  void serve(int client);

  int destination_port_;
  int port_ = 0;
  UniqueFd listener_;
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  std::list<UniqueFd> fds_;
  std::list<std::thread> workers_;
  std::thread acceptor_;
};

}  // namespace slurmlet::http
