#pragma once

// The screening reader: the only code that reads bytes of an unauthenticated client. Reads the head
// of an HTTP/1.x request (RFC 9112); requests with a body are rejected without reading it, since
// none of ours has one. Reads the RFC strictly: no line folding, no bare CR or LF, no white space
// before the colon, no control characters, nothing outside ASCII, no absolute or authority form of
// the target, one Host, no empty line before the request.
//
// Pure; needs at most about three times max_bytes of memory and 64 bytes for each header.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace slurmlet::podapi {

struct HeadLimits {
  std::size_t max_bytes = std::size_t{16} << 10;  // of the whole head
  std::size_t max_target_bytes = 4096;
  std::size_t max_headers = 64;
};

struct RequestHead {
  std::string method;  // GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS
  std::string path;    // absolute, as sent: percent-encoding is kept, no dot segments are resolved
  std::string query;   // without the "?"
  bool keep_alive = true;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  // The header's value; nothing if it is missing or repeated.
  std::optional<std::string> header(std::string_view name) const;
};

class HeadReader {
 public:
  enum class State { kIncomplete, kComplete, kRejected };

  explicit HeadReader(HeadLimits limits = {}) : limits_(limits) {}

  // Reads bytes until the head is complete or rejected, never beyond its empty line, and returns
  // how many were read. The result does not depend on how the bytes are split.
  std::size_t feed(std::string_view bytes);

  State state() const { return state_; }
  const RequestHead& head() const { return head_; }  // kComplete
  // After kRejected; the text never quotes the client:
  //   400 malformed, or a repeated header; 413 has a body (Content-Length other than 0);
  //   414 target too long; 431 head too long or too many headers; 501 unknown method, or a transfer
  //   coding; 505 neither HTTP/1.0 nor HTTP/1.1
  int rejection_status() const { return rejection_status_; }
  const std::string& rejection() const { return rejection_; }
  bool has_begun() const { return taken_ > 0; }
  void reset() { *this = HeadReader{limits_}; }  // for the next request of the connection

 private:
  void take(char byte);
  bool fits(char byte);
  void end_line();
  void read_request_line();
  void read_target(std::string_view target);
  void read_header_line();
  void finish();
  void check_body();
  void reject(int status, const char* why);

  HeadLimits limits_;
  State state_ = State::kIncomplete;
  std::size_t taken_ = 0;
  std::string line_;  // the line being read, without its CR LF
  bool after_cr_ = false;
  bool is_http_1_0_ = false;
  RequestHead head_;
  int rejection_status_ = 0;
  std::string rejection_;
};

}  // namespace slurmlet::podapi
