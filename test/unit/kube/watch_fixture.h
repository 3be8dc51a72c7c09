#pragma once

// A watch of a node's pods on an API server that the test plays.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "kube/watch.h"

namespace slurmlet::kube {

inline std::string pod_json(const std::string& name, const std::string& version) {
  return R"({"metadata":{"namespace":"d","name":")" + name + R"(","uid":"uid-)" + name +
         R"(","resourceVersion":")" + version + R"("}})";
}
inline std::string line(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}
inline std::string bookmark(const std::string& version) {
  return line("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":")" + version + R"("}})");
}
inline std::string list_json(const std::string& version, const std::string& items = "") {
  return R"({"kind":"PodList","metadata":{"resourceVersion":")" + version + R"("},"items":[)" +
         items + "]}";
}
inline std::string status_json(int code, const std::string& reason, const std::string& more = "") {
  return R"({"kind":"Status","status":"Failure","message":"too old","reason":")" + reason +
         R"(","code":)" + std::to_string(code) + more + "}";
}

struct WatchRig {
  SteadyTime step() {
    events_.clear();
    return watch_->step(clock_.now(), events_);
  }
  Duration until_wake() { return step() - clock_.now().steady; }
  // Steps, waits as long as it wants to, and steps again; how long that was.
  Duration wait() {
    const Duration pause = until_wake();
    clock_.advance(pause);
    step();
    return pause;
  }
  // Listed at version 100 and streaming.
  void connect() {
    client_.answer(200, list_json("100"));
    step();
    step();
    ASSERT_EQ(client_.streams.size(), 1U);
    client_.stream().status = 200;
    step();
  }
  void answer_busy(int status) {
    http::Response response;
    response.status = status;
    response.retry_after = std::chrono::seconds{17};
    client_.answer(response);
  }
  Code problem() const { return watch_->last_error().value_or(Error{Code::kCancelled, ""}).code; }
  std::size_t opened() const { return client_.stream_requests.size(); }
  std::size_t listed() const { return client_.requests.size(); }
  std::string resumed_from() const {
    const std::string& path = client_.stream_requests.back().path;
    const std::string key = "&resourceVersion=";
    const auto at = path.find(key) + key.size();
    return path.substr(at, path.find('&', at) - at);
  }

  fakes::FakeHttpClient client_;
  fakes::FakeClock clock_;
  RequestCounter counter_;
  double random_ = 0.5;
  std::unique_ptr<Watch<Pod>> watch_ =
      watch_own_pods(client_, "n1", {&counter_, {}}, [this] { return random_; });
  std::vector<WatchEvent<Pod>> events_;
};

}  // namespace slurmlet::kube
