#pragma once

// Formats answers as HTTP/1.1, with cpp-httplib (https://github.com/yhirose/cpp-httplib). No byte
// of a client reaches the library, so its vulnerabilities are out of reach: it gets our own "GET /
// HTTP/1.1" or "HEAD / HTTP/1.1" and writes the given answer
// (docs/contributors/adr/0009-screening-reader-before-cpp-httplib.md).
//
// Not thread-safe. Its constructor makes the process ignore SIGPIPE (cpp-httplib does).

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "podapi/request_head.h"
#include "podapi/routes.h"

namespace slurmlet::podapi {

class HttpAnswerer {
 public:
  // Values for the Keep-Alive header.
  explicit HttpAnswerer(std::chrono::seconds idle_timeout = std::chrono::seconds{90},
                        std::size_t max_requests = 1000);
  ~HttpAnswerer();
  HttpAnswerer(const HttpAnswerer&) = delete;
  HttpAnswerer& operator=(const HttpAnswerer&) = delete;

  // `head`: only for the method HEAD, whose answer has no body. `keep_open` becomes the Connection
  // header. Returns "" if cpp-httplib fails.
  std::string answer(const RequestHead& head, const Response& response, bool keep_open);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace slurmlet::podapi
