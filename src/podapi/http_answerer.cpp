#include "podapi/http_answerer.h"

#include <httplib.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace slurmlet::podapi {
namespace {

// A request in memory. Virtual functions differ between versions of cpp-httplib (is_writable up to
// 0.19; wait_readable, wait_writable and duration from 0.20), so none is marked `override`.
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

void copy(const Response& from, bool keep_open, httplib::Response& to) {
  to.status = from.status;
  to.set_content(from.body, from.content_type.c_str());
  for (const auto& [name, value] : from.headers) {
    to.set_header(name.c_str(), value);
  }
  // cpp-httplib adds "close" itself; HTTP/1.0 clients require an explicit "keep-alive".
  if (keep_open) {
    to.set_header("Connection", "keep-alive");
  }
}

}  // namespace

class HttpAnswerer::Engine final : public httplib::Server {
 public:
  Engine(std::chrono::seconds idle_timeout, std::size_t max_requests) {
    set_keep_alive_timeout(idle_timeout.count());
    set_keep_alive_max_count(max_requests);
    // Runs before cpp-httplib's routing, which matches recursive regular expressions. noexcept,
    // since old versions put an exception's text into the answer.
    set_pre_routing_handler([this](const httplib::Request&, httplib::Response& to) noexcept {
      copy(*response_, keep_open_, to);
      return HandlerResponse::Handled;
    });
  }

  std::string run(const char* request_line, const Response& response, bool keep_open) {
    response_ = &response;
    keep_open_ = keep_open;
    TextStream stream{std::string{request_line} + "Host: localhost\r\n\r\n"};
    run_on(*this, stream, !keep_open);
    return stream.take_output();
  }

 private:
  // process_request() takes two addresses since 0.16; a template compiles only the existing form.
  template <typename Self>
  static void run_on(Self& self, TextStream& stream, bool close) {
    bool closed = false;
    if constexpr (requires { self.process_request(stream, close, closed, nullptr); }) {
      self.process_request(stream, close, closed, nullptr);
    } else {
      self.process_request(stream, "", 0, "", 0, close, closed, nullptr);
    }
  }

  const Response* response_ = nullptr;
  bool keep_open_ = false;
};

HttpAnswerer::HttpAnswerer(std::chrono::seconds idle_timeout, std::size_t max_requests)
    : engine_(std::make_unique<Engine>(idle_timeout, max_requests)) {}

HttpAnswerer::~HttpAnswerer() = default;

std::string HttpAnswerer::answer(const RequestHead& head, const Response& response,
                                 bool keep_open) {
  const char* const request_line =
      head.method == "HEAD" ? "HEAD / HTTP/1.1\r\n" : "GET / HTTP/1.1\r\n";
  try {
    return engine_->run(request_line, response, keep_open);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace slurmlet::podapi
