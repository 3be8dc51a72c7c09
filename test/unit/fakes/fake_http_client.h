#pragma once

// An http::Client without a network: answers are scripted in order, streams are fed by the test.
// Not thread-safe.

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/client.h"

namespace slurmlet::fakes {

// The server's end of a stream, shared by the test and the stream.
struct StreamScript {
  int status = 0;
  std::optional<Duration> retry_after = {};
  std::string pending;  // not taken yet
  bool ended = false;
  std::optional<Error> error;
  bool closed = false;  // the code under test let go of the stream

  void feed(const std::string& bytes) { pending += bytes; }
  void end() { ended = true; }
  void break_off(Error why) {
    ended = true;
    error = std::move(why);
  }
};

class FakeHttpClient final : public http::Client {
 public:
  // --- scripted by the test
  void answer(int status, std::string body) {
    http::Response response;
    response.status = status;
    response.body = std::move(body);
    answers_.emplace_back(std::move(response));
  }
  void answer(http::Response response) { answers_.emplace_back(std::move(response)); }
  void fail(Error error) { answers_.emplace_back(std::move(error)); }

  // Answers what nothing else is scripted for.
  std::function<http::Response(const http::Request&)> responder;
  int stream_status = 0;  // of each stream from its beginning; 0: no answer yet

  // --- seen by the test
  std::vector<http::Request> requests;         // of call(), in order, without the server's limit
  std::vector<std::string> server_limits;      // of the same requests: "8000ms"
  std::vector<http::Request> stream_requests;  // of open_stream(), in order
  std::vector<std::shared_ptr<StreamScript>> streams;
  std::vector<SteadyTime> waits;  // `until` of each wait()
  std::vector<int> waited_fds;    // of the last wait()
  int idle_closures = 0;
  int abort_fd = -1;
  std::atomic<bool> interrupted = false;    // interrupt() is thread-safe
  std::function<void(SteadyTime)> on_wait;  // e.g. moves a FakeClock
  std::string address = "192.0.2.7";

  const http::Request& last() const { return requests.back(); }
  StreamScript& stream() { return *streams.back(); }
  std::size_t answers_left() const { return answers_.size(); }

  // --- http::Client
  Result<http::Response> call(const http::Request& request) override {
    requests.push_back(request);
    take_limit(requests.back().path);
    if (interrupted) {
      return Error{Code::kCancelled, "interrupted"};
    }
    if (answers_.empty() && responder) {
      return responder(requests.back());
    }
    if (answers_.empty()) {
      return Error{Code::kUnavailable, "connection refused"};
    }
    auto answer = std::move(answers_.front());
    answers_.pop_front();
    return answer;
  }

  std::unique_ptr<http::Stream> open_stream(const http::Request& request) override {
    stream_requests.push_back(request);
    streams.push_back(std::make_shared<StreamScript>());
    streams.back()->status = stream_status;
    return std::make_unique<FakeStream>(streams.back());
  }

  std::vector<int> wait(SteadyTime until, const std::vector<int>& fds) override {
    waits.push_back(until);
    waited_fds = fds;
    if (on_wait) {
      on_wait(until);
    }
    return {};
  }

  void interrupt() override { interrupted = true; }
  void set_abort_fd(int fd) override { abort_fd = fd; }
  void close_idle_connections() override { ++idle_closures; }
  std::string local_address() const override { return address; }

 private:
  void take_limit(std::string& path) {
    static constexpr std::string_view kName = "timeout=";
    const std::size_t at = path.rfind(kName);
    server_limits.push_back(at == std::string::npos ? "" : path.substr(at + kName.size()));
    path.resize(at == std::string::npos ? path.size() : at - 1);
  }
  class FakeStream final : public http::Stream {
   public:
    explicit FakeStream(std::shared_ptr<StreamScript> script) : script_(std::move(script)) {}
    FakeStream(const FakeStream&) = delete;
    FakeStream& operator=(const FakeStream&) = delete;
    ~FakeStream() override { script_->closed = true; }
    int status() const override { return script_->status; }
    std::optional<Duration> retry_after() const override { return script_->retry_after; }
    std::string take() override { return std::exchange(script_->pending, {}); }
    bool ended() const override { return script_->ended; }
    std::optional<Error> error() const override { return script_->error; }

   private:
    std::shared_ptr<StreamScript> script_;
  };

  std::deque<Result<http::Response>> answers_;
};

}  // namespace slurmlet::fakes
