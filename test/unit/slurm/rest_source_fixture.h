#pragma once

// A RestSource over an HTTP client whose answers the test writes, or takes from the captures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "fixture.h"
#include "slurm/sources/rest_source.h"

namespace slurmlet::slurm {

inline constexpr const char* kSocket = "unix:/run/slurmrestd.socket";

// {"exp":1795183200,"sun":"daemon"}; 2026-11-20T14:00:00Z, when FakeClock starts
inline constexpr const char* kToken =
    "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTUxODMyMDAsInN1biI6ImRhZW1vbiJ9.c2ln";

class RestSourceTest : public testing::Test {
 protected:
  RestSourceTest() { clock_.step_wall(-std::chrono::seconds{60}); }

  void make(const std::string& url = kSocket, const std::string& user = "") {
    RestSettings settings;
    settings.server.url = url;
    settings.user = user;
    settings.own_user = [this] {
      ++own_user_lookups_;
      return own_user_;
    };
    settings.timeout = std::chrono::seconds{15};
    settings.make_client = [this]() -> Result<std::unique_ptr<http::Client>> {
      ++clients_made_;
      if (client_error_) {
        return *client_error_;
      }
      auto client = std::make_unique<fakes::FakeHttpClient>();
      http_ = client.get();
      return std::unique_ptr<http::Client>{std::move(client)};
    };
    settings.read_token = [this] { return token_; };
    settings.check_listener = [this] {
      return listener_problem_ ? Status{*listener_problem_} : Status{};
    };
    source_ = std::make_unique<RestSource>(settings);
  }
  std::optional<QueryFailure> ask(const std::string& node = "gpu01") {
    return source_->ask(node, Query::kOneNode, clock_.now());
  }
  std::optional<QueryResult> poll() { return source_->poll(clock_.now()); }
  // slurmrestd's answer to the request under way, as `curl -i` printed it.
  void answer_as_captured(const std::string& name) {
    const std::string text = fixture(name);
    const auto blank = text.find("\r\n\r\n");
    ASSERT_NE(blank, std::string::npos) << name;
    answer(std::stoi(text.substr(text.find(' ') + 1)), text.substr(blank + 4));
  }
  void answer(int status, const std::string& body) {
    ASSERT_NE(http_, nullptr);
    http_->stream().status = status;
    http_->stream().feed(body);
    http_->stream().end();
  }
  void not_served() {
    answer(404, "Unable find requested URL. Please view /openapi/v3 for API reference.");
  }
  // Answers 404 until `version` is asked.
  void find(int version) {
    const std::string wanted = "/" + api_version_name(version) + "/";
    for (int i = 0; http_->stream_requests.back().path.find(wanted) == std::string::npos; ++i) {
      ASSERT_LT(i, 12);
      not_served();
      ASSERT_FALSE(poll()) << "no request for " << version;
    }
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const auto& request : http_->stream_requests) {
      out.push_back(request.path);
    }
    return out;
  }
  node::SlurmFailure cause_of(const std::optional<QueryResult>& result) {
    EXPECT_TRUE(result && result->failure);
    return result && result->failure ? result->failure->cause : node::SlurmFailure::kGarbage;
  }

  fakes::FakeClock clock_;
  fakes::FakeHttpClient* http_ = nullptr;
  RestToken token_;
  std::optional<Error> client_error_, listener_problem_;
  int clients_made_ = 0;
  std::string own_user_ = "root";
  int own_user_lookups_ = 0;
  std::unique_ptr<RestSource> source_;
};

}  // namespace slurmlet::slurm
