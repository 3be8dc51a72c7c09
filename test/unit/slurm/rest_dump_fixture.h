#pragma once

// A RestDump over an HTTP client whose answers the test writes, or takes from the captures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "fixture.h"
#include "slurm/sources/rest_dump.h"

namespace slurmlet::slurm {

inline constexpr const char* kSocket = "unix:/run/slurmrestd.socket";

// {"exp":1795183200,"sun":"daemon"}; 2026-11-20T14:00:00Z, when FakeClock starts
inline constexpr const char* kToken =
    "eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE3OTUxODMyMDAsInN1biI6ImRhZW1vbiJ9.c2ln";

class RestDumpTest : public testing::Test {
 protected:
  RestDumpTest() { clock_.step_wall(-std::chrono::seconds{60}); }

  void make_dump(const std::string& url = kSocket) {
    RestSettings settings;
    settings.url = url;
    settings.own_user = [] { return "root"; };
    settings.make_client = [this]() -> Result<std::unique_ptr<http::Client>> {
      auto client = std::make_unique<fakes::FakeHttpClient>();
      http_ = client.get();
      return std::unique_ptr<http::Client>{std::move(client)};
    };
    settings.read_token = [this] { return token_; };
    dump_ = std::make_unique<RestDump>(settings);
  }
  bool start(bool or_unchanged = false) {
    return static_cast<bool>(dump_->start(clock_.now(), or_unchanged));
  }
  std::optional<Result<DumpSource::Answer>> dump() { return dump_->poll(clock_.now()); }
  std::string error_of(const std::optional<Result<DumpSource::Answer>>& result) {
    EXPECT_TRUE(result && !*result);
    return result && !*result ? result->error().message : "";
  }
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
  // Until a version that this release has is asked.
  void find_version(int version) {
    const std::string wanted = "/" + api_version_name(version) + "/";
    for (int i = 0; paths().back().find(wanted) == std::string::npos; ++i) {
      ASSERT_LT(i, 12);
      not_served();
      ASSERT_FALSE(dump());
    }
  }
  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const auto& request : http_->stream_requests) {
      out.push_back(request.path);
    }
    return out;
  }
  fakes::FakeClock clock_;
  fakes::FakeHttpClient* http_ = nullptr;
  RestToken token_;
  std::unique_ptr<RestDump> dump_;
};

}  // namespace slurmlet::slurm
