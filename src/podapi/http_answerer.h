#pragma once

// Formats answers as HTTP/1.1. The one place that knows cpp-httplib
// (https://github.com/yhirose/cpp-httplib), and the reason why its many holes do not matter here:
// no byte of a client reaches it. It is asked "GET / HTTP/1.1" or "HEAD / HTTP/1.1" in our own
// words, whatever the client sent, and writes the answer that it is handed
// (docs/adr/0009-screening-reader-before-cpp-httplib.md).
//
// Not thread-safe. Constructing one sets SIGPIPE to "ignore" for the process (cpp-httplib does).

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "podapi/request_head.h"
#include "podapi/routes.h"

namespace slurmlet::podapi {

class HttpAnswerer {
 public:
  // What the Keep-Alive header of an answer promises.
  explicit HttpAnswerer(std::chrono::seconds idle_timeout = std::chrono::seconds{90},
                        std::size_t max_requests = 1000);
  ~HttpAnswerer();
  HttpAnswerer(const HttpAnswerer&) = delete;
  HttpAnswerer& operator=(const HttpAnswerer&) = delete;

  // Of `head` only counts whether the method is HEAD, whose answer has no body. `keep_open` becomes
  // the Connection header. "" if cpp-httplib has nothing to say.
  std::string answer(const RequestHead& head, const Response& response, bool keep_open);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace slurmlet::podapi
