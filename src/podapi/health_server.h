#pragma once

// Serves the routes of routes.h over plain HTTP on 127.0.0.1 only, as the kubelet does on 10248.
//
// Whoever has a shell on the node can connect, so everything is bounded: two threads, one request a
// connection, five seconds for it in all, 16 KiB of request, and never more than one open
// connection a thread (others wait in the kernel's queue). An idle server sleeps in poll() without
// a timeout.
//
// start() and stop() belong to one owner thread. `snapshot` is called on the server's threads, for
// each request, two at a time at most: it must be thread-safe and quick, since stop() waits for it.

#include <pthread.h>

#include <chrono>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "podapi/http_answerer.h"
#include "podapi/routes.h"

namespace slurmlet::podapi {

struct HealthServerOptions {
  int port = 10248;  // 0: any free one (for tests; port() tells)
  int threads = 2;
  Duration time_limit = std::chrono::seconds{5};
  std::size_t max_request_bytes = std::size_t{16} << 10;
};

class HealthServer {
 public:
  HealthServer(HealthServerOptions options, std::function<Snapshot()> snapshot);
  ~HealthServer();  // stops
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  // kConflict when the port is taken; the message names the flag. Serves once it returns.
  Status start();
  // Cuts off clients that are being served. Returns when the threads have ended. Idempotent.
  void stop();
  int port() const { return port_; }

 private:
  static void* run_thread(void* server);
  Status listen();
  Status start_thread();
  void serve();
  void serve_one(UniqueFd socket);

  HealthServerOptions options_;
  HttpAnswerer answerer_;
  UniqueFd listener_;
  UniqueFd stop_;  // eventfd, readable for good once stop() was called
  std::vector<pthread_t> threads_;
  int port_ = 0;
};

}  // namespace slurmlet::podapi
