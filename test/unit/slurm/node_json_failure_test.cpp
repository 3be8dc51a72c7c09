// The failing answers of slurmrestd, and of what stands in front of it.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "rest_capture.h"
#include "slurm/answers/node_json.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;
using testing::HasSubstr;

QueryFailure failure_of(int status, const std::string& body) {
  auto result = parse_nodes_json(body, status);
  EXPECT_TRUE(result.failure) << body;
  EXPECT_TRUE(result.nodes.empty()) << body;
  return result.failure.value_or(QueryFailure{});
}

// The cause of every captured answer: captures_test.cpp.
TEST(RestFailure, SaysWhatHelps) {
  const std::pair<const char*, const char*> kRows[] = {
      {"22.05.8/ctld-down.rest.out", "munged on slurmrestd"},
      {"22.05.8/ctld-hung.rest.out", "slurmctld is down"},
      {"22.05.8/jwt-expired.out", "token is expired"},
      {"24.11/ctld-down.rest.out", "Unable to contact slurm controller (connect failure)"},
      {"22.05.8/rest-node-notfound.out", "no such node"},
      {"25.11/nonexistent.rest.out", "no such node"},
      {"22.05.8/jwt-bearer.out", "HTTP 401"},
      {"22.05.8/rest-otheruser-401.out", "own user"},
      {"22.05.8/rest-401-unresolvable-uid.out", "valid token"},
      {"25.11/jwt-wrong.out", "the token is expired or invalid"},
      {"22.05.8/rest-v0.0.39-unsupported.out", "API version"},
  };
  for (const auto& [file, words] : kRows) {
    const auto capture = rest_capture(file);
    EXPECT_THAT(failure_of(capture.status, capture.body).detail, HasSubstr(words)) << file;
  }
}

std::string with_error(const std::string& number, const std::string& text,
                       const std::string& description = "Failure to query node n1") {
  return fmt::format(
      R"({{"errors": [{{"description": "{}", "error_number": {}, "error": "{}"}}], "meta": {{}}}})",
      description, number, text);
}

TEST(RestFailure, ErrorsByNumberAndByText) {
  struct Case {
    int status;
    const char* number;
    const char* text;
    SlurmFailure cause;
    const char* part;
  };
  const std::vector<Case> cases{
      {502, "1801", "Unable to contact slurm controller (send failure)",
       SlurmFailure::kControllerUnreachable, "(send failure)"},
      {502, "1804", "Rate limit exceeded, please retry momentarily", SlurmFailure::kRateLimited,
       "rl_enable"},
      {500, "1805", "Rate limit exceeded, please retry later", SlurmFailure::kRateLimited, ""},
      {500, "2002", "Access/permission denied", SlurmFailure::kPermissionDenied,
       "Access/permission denied"},
      {200, "2002", "Access/permission denied", SlurmFailure::kPermissionDenied, ""},
      {500, "2010", "Invalid user id", SlurmFailure::kPermissionDenied, ""},
      {502, "5005", "Zero Bytes were transmitted or received", SlurmFailure::kControllerUnreachable,
       "Zero Bytes"},
      {504, "5004", "Socket timed out on send/recv operation", SlurmFailure::kControllerUnreachable,
       "Socket timed out"},
      {500, "1005", "Incompatible versions of client and server code",
       SlurmFailure::kControllerUnreachable, ""},
      {500, "2027", "Slurm controller in standby mode", SlurmFailure::kControllerUnreachable, ""},
      {500, "111", "Connection refused", SlurmFailure::kControllerUnreachable, ""},
      {500, "104", "Connection reset by peer", SlurmFailure::kControllerUnreachable, ""},
      {500, "-1", "Unspecified error", SlurmFailure::kControllerUnreachable, "gave no reason"},
      {401, "6000", "Invalid authentication credential", SlurmFailure::kTokenRefused, "HTTP 401"},
      {500, "6001", "Authentication credential expired", SlurmFailure::kTokenRefused, "expired"},
      {502, "7000", "Unable to connect to database", SlurmFailure::kRestUnavailable, "slurmdbd"},
      {500, "1800", "", SlurmFailure::kControllerUnreachable, "Failure to query node n1"},
      {500, "null", "Rate limit exceeded, please retry later", SlurmFailure::kRateLimited, ""},
      {500, "\"x\"", "Access/permission denied", SlurmFailure::kPermissionDenied, ""},
      {500, "4242", "Frobnication failed", SlurmFailure::kInvalidResponse,
       "slurmrestd returned error 4242: Frobnication failed"},
      {500, "99999999999999999999", "Frobnication failed", SlurmFailure::kInvalidResponse,
       "Frobnication failed"},
      {404, "2018", "Invalid node name specified", SlurmFailure::kNotInSlurm, ""},
  };
  for (const auto& c : cases) {
    const auto failure = failure_of(c.status, with_error(c.number, c.text));
    EXPECT_EQ(failure.cause, c.cause) << c.number << " " << c.text << ": " << failure.detail;
    EXPECT_THAT(failure.detail, HasSubstr(c.part)) << c.number;
  }
}

// "No error" of a dump, or of anything else, does not say that this node is gone.
TEST(RestFailure, NoErrorMeansNotFoundOnlyForTheQueryOfANode) {
  EXPECT_EQ(failure_of(200, with_error("0", "No error")).cause, SlurmFailure::kNotInSlurm);
  const auto other = failure_of(200, with_error("0", "No error", "Failure to query nodes"));
  EXPECT_EQ(other.cause, SlurmFailure::kInvalidResponse);
  EXPECT_THAT(other.detail, HasSubstr("Failure to query nodes"));
}

TEST(RestFailure, TheFirstKnownErrorCounts) {
  const auto failure = failure_of(500, R"({"errors": [7, "odd", {"error": "Frobnication"},
      {"error": "Access/permission denied", "errno": 2002}], "nodes": []})");
  EXPECT_EQ(failure.cause, SlurmFailure::kPermissionDenied);
}

TEST(RestFailure, OtherServersAnswers) {
  const std::string nginx =
      "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad "
      "Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";
  struct Case {
    int status;
    std::string body;
    SlurmFailure cause;
    std::string detail;
  };
  const std::vector<Case> cases{
      {502, nginx, SlurmFailure::kRestUnavailable, "no usable answer (HTTP 502: 502 Bad Gateway)"},
      {503, "", SlurmFailure::kRestUnavailable, "no usable answer (HTTP 503)"},
      {504, "upstream request timeout", SlurmFailure::kRestUnavailable,
       "no usable answer (HTTP 504: upstream request timeout)"},
      {500, R"({"message": "oops"})", SlurmFailure::kRestUnavailable,
       "no usable answer (HTTP 500)"},
      {400, "The plain HTTP request was sent to HTTPS port", SlurmFailure::kRestUnavailable,
       "no usable answer (HTTP 400: The plain HTTP request was sent to HTTPS port)"},
      {404, "<!DOCTYPE html><p>Not  <b>here</b>", SlurmFailure::kRestUnavailable,
       "nothing is served at this address (HTTP 404: Not here)"},
      {302, "<html><title>Moved</title></html>", SlurmFailure::kRestUnavailable,
       "redirected to another address (HTTP 302: Moved)"},
      {304, "", SlurmFailure::kInvalidResponse, "an answer without a record (HTTP 304)"},
      {403, "Forbidden", SlurmFailure::kPermissionDenied, "access denied (HTTP 403: Forbidden)"},
      {407, "", SlurmFailure::kRestUnavailable, "a proxy requires credentials (HTTP 407)"},
      {429, "slow down", SlurmFailure::kRateLimited,
       "slurmrestd or a proxy limits the rate of requests (HTTP 429: slow down)"},
      {200, "<html><title>Log in</title><body>…</html>", SlurmFailure::kInvalidResponse,
       "the answer is not JSON: Log in"},
      {200, "", SlurmFailure::kInvalidResponse, "the answer is empty"},
      {204, "", SlurmFailure::kInvalidResponse, "the answer is empty"},
      {200, R"({"nodes": [{"name": "n1",)", SlurmFailure::kInvalidResponse,
       "the answer is truncated or not valid JSON"},
      {200, "{}", SlurmFailure::kInvalidResponse,
       "the answer is JSON, but not Slurm's JSON of nodes"},
      {200, "[1, 2]", SlurmFailure::kInvalidResponse,
       "the answer is JSON, but not Slurm's JSON of nodes"},
      {200, R"({"nodes": null})", SlurmFailure::kInvalidResponse,
       "the answer is JSON, but not Slurm's JSON of nodes"},
      {200, R"({"kind": "PodList", "items": []})", SlurmFailure::kInvalidResponse,
       "the answer is JSON, but not Slurm's JSON of nodes"},
      {200, R"({"nodes": [], "errors": []})", SlurmFailure::kNotInSlurm,
       "the answer contains no nodes"},
      {200, "NULL", SlurmFailure::kInvalidResponse, "the answer is not JSON: NULL"},
      {200, "\xFF\xFE", SlurmFailure::kInvalidResponse,
       "the answer is not JSON: \xEF\xBF\xBD\xEF\xBF\xBD"},
  };
  for (const auto& c : cases) {
    const auto failure = failure_of(c.status, c.body);
    EXPECT_EQ(failure.cause, c.cause) << c.status << " " << c.body << ": " << failure.detail;
    EXPECT_EQ(failure.detail, c.detail) << c.status << " " << c.body;
  }
}

TEST(RestFailure, DetailsAreShortStableAndWithoutSecrets) {
  const std::string token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJleHAiOjE3OTUyMTY2OTJ9.c2lnbg";
  const auto echoed = failure_of(200, "you sent X-SLURM-USER-TOKEN: " + token + " id 4242424242");
  EXPECT_EQ(echoed.detail, "the answer is not JSON: you sent X-SLURM-USER-TOKEN: id");

  const auto failure = failure_of(503, "a\tb\x01\n c " + std::string(9999, 'd') + "\xC3\xA4");
  EXPECT_EQ(failure.detail, "no usable answer (HTTP 503: a b c)");
  std::string umlauts;
  for (int i = 0; i < 99; ++i) {
    umlauts += "\xC3\xA4 ";
  }
  const auto cut = failure_of(200, umlauts);
  EXPECT_LE(cut.detail.size(), 80U + 24U);
  EXPECT_TRUE(cut.detail.ends_with("\xC3\xA4...")) << "not within a character";

  const auto wordy = failure_of(500, with_error("4242", std::string(5000, 'x')));
  EXPECT_LE(wordy.detail.size(), 256U);
}

}  // namespace
}  // namespace slurmlet::slurm
