#include "podapi/http_answerer.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace slurmlet::podapi {
namespace {

// A request in memory. The set of virtual functions differs between cpp-httplib versions
// (is_writable up to 0.19; wait_readable, wait_writable and duration from 0.20), so none is marked
// `override`: those that the installed version declares override, the others are just there.
class TextStream final : public httplib::Stream {
 public:
  explicit TextStream(std::string text) : in_(std::move(text)) {}
  std::string take_output() { return std::move(out_); }

  bool is_readable() const { return true; }                 // NOLINT(modernize-use-override)
  bool is_writable() const { return true; }                 // NOLINT(modernize-use-override)
  bool wait_readable() const { return true; }               // NOLINT(modernize-use-override)
  bool wait_writable() const { return true; }               // NOLINT(modernize-use-override)
  time_t duration() const { return 0; }                     // NOLINT(modernize-use-override)
  socket_t socket() const { return 0; }                     // NOLINT(modernize-use-override)
  void get_remote_ip_and_port(std::string&, int&) const {}  // NOLINT(modernize-use-override)
  void get_local_ip_and_port(std::string&, int&) const {}   // NOLINT(modernize-use-override)
  ssize_t read(char* into, size_t size) {                   // NOLINT(modernize-use-override)
    const size_t n = std::min(size, in_.size() - at_);
    std::memcpy(into, in_.data() + at_, n);
    at_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) {  // NOLINT(modernize-use-override)
    out_.append(from, size);
    return static_cast<ssize_t>(size);
  }

 private:
  std::string in_;
  size_t at_ = 0;
  std::string out_;
};

void copy(const Response& from, httplib::Response& to) {
  to.status = from.status;
  to.set_content(from.body, from.content_type.c_str());
  for (const auto& [name, value] : from.headers) {
    to.set_header(name.c_str(), value);
  }
}

}  // namespace

class HttpAnswerer::Engine final : public httplib::Server {
 public:
  explicit Engine(HttpAnswerer::Handler handler) {
    // Before cpp-httplib's own routing, which matches paths by recursive regular expressions.
    set_pre_routing_handler(
        [handler = std::move(handler)](const httplib::Request& request, httplib::Response& answer) {
          copy(handler({request.method, request.path}), answer);
          return HandlerResponse::Handled;
        });
  }

  void run(TextStream& stream) { run_on(*this, stream); }

 private:
  // process_request() got the two addresses as arguments in 0.16. A template, so that only the form
  // that exists is compiled.
  template <typename Self>
  static void run_on(Self& self, TextStream& stream) {
    bool closed = false;
    if constexpr (requires { self.process_request(stream, true, closed, nullptr); }) {
      self.process_request(stream, true, closed, nullptr);
    } else {
      self.process_request(stream, "", 0, "", 0, true, closed, nullptr);
    }
  }
};

HttpAnswerer::HttpAnswerer(Handler handler)
    : engine_(std::make_unique<Engine>(std::move(handler))) {}

HttpAnswerer::~HttpAnswerer() = default;

std::string HttpAnswerer::answer(std::string_view head) const {
  const std::size_t end = head.find_first_of("\r\n");
  const std::string_view request_line = head.substr(0, end);
  // The other headers are left out on purpose: cpp-httplib 0.11 reads Range with a recursive
  // regular expression, and eight kilobytes of it overflow a stack of 2 MiB.
  TextStream stream{std::string{request_line} + "\r\nHost: localhost\r\nConnection: close\r\n\r\n"};
  try {
    engine_->run(stream);
  } catch (const std::exception&) {
    return {};
  }
  return stream.take_output();
}

}  // namespace slurmlet::podapi
