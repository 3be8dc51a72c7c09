#include "kube/status_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace slurmlet::kube {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string status_body(int code, const std::string& reason, const std::string& message = "m") {
  return nlohmann::json{{"kind", "Status"},   {"apiVersion", "v1"}, {"status", "Failure"},
                        {"message", message}, {"reason", reason},   {"code", code}}
      .dump();
}

TEST(StatusErrorTest, TurnsStatusIntoCode) {
  const struct {
    int http;
    const char* reason;
    Code code;
  } table[] = {
      {400, "BadRequest", Code::kInvalid},
      {401, "Unauthorized", Code::kDenied},
      {403, "Forbidden", Code::kDenied},
      {404, "NotFound", Code::kNotFound},
      {405, "MethodNotAllowed", Code::kInvalid},
      {406, "NotAcceptable", Code::kInvalid},
      {409, "Conflict", Code::kConflict},
      {409, "AlreadyExists", Code::kConflict},
      {410, "Gone", Code::kGone},
      {410, "Expired", Code::kGone},
      {400, "Expired", Code::kGone},
      {413, "RequestEntityTooLarge", Code::kInvalid},
      {415, "UnsupportedMediaType", Code::kInvalid},
      {422, "Invalid", Code::kInvalid},
      {429, "TooManyRequests", Code::kUnavailable},
      {500, "InternalError", Code::kInternal},
      {500, "ServerTimeout", Code::kTimeout},
      {502, "", Code::kUnavailable},
      {503, "ServiceUnavailable", Code::kUnavailable},
      {504, "Timeout", Code::kTimeout},
      {301, "", Code::kInternal},
      {418, "", Code::kInternal},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(std::to_string(row.http) + " " + row.reason);
    EXPECT_EQ(code_of(status_from_body(row.http, status_body(row.http, row.reason))), row.code);
  }
  // Of a load balancer, or of an API server that does not serve the path: no object was looked for.
  for (const std::string& body : {std::string{"404 page not found\n"}, std::string{},
                                  std::string{"{}"}, status_body(404, "")}) {
    EXPECT_EQ(code_of(status_from_body(404, body)), Code::kInternal) << body;
  }
  EXPECT_FALSE(status_from_json(nlohmann::json::array()));
  EXPECT_FALSE(status_from_json({{"kind", "Node"}, {"code", 410}}));
}

TEST(StatusErrorTest, RetryAfterMakesAnInternalErrorTemporary) {
  const ApiStatus status =
      status_from_body(500, R"({"kind":"Status","reason":"InternalError","message":"m","code":500,
               "details":{"retryAfterSeconds":3}})");
  EXPECT_EQ(code_of(status), Code::kUnavailable);
  EXPECT_EQ(status.retry_after, Duration{std::chrono::seconds{3}});

  EXPECT_EQ(status_error("GET /x", status).retry_after, Duration{std::chrono::seconds{3}});
  const ApiStatus by_header = status_from_body(500, "", std::chrono::seconds{7});
  EXPECT_EQ(code_of(by_header), Code::kUnavailable);
  EXPECT_EQ(status_error("GET /x", by_header).with_prefix("register").retry_after,
            Duration{std::chrono::seconds{7}});
}

// Captured from kube-apiserver 1.36.
constexpr const char* kForbidden =
    R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"nodes \"n2\" is forbidden: User \"system:node:n1\" cannot get resource \"nodes\" in API group \"\" at the cluster scope: node 'n1' cannot read 'n2', only its own Node object","reason":"Forbidden","details":{"name":"n2","kind":"nodes"},"code":403})";

TEST(StatusErrorTest, MessageNamesMethodPathStatusAndTheServersWords) {
  http::Request request;
  request.method = "PATCH";
  request.path = "/api/v1/nodes/n1/status?fieldManager=slurmlet";
  const Error error = status_error(request_name(request), status_from_body(403, kForbidden));
  EXPECT_EQ(error.code, Code::kDenied);
  EXPECT_THAT(error.message,
              AllOf(StartsWith("PATCH /api/v1/nodes/n1/status: 403 Forbidden: "),
                    EndsWith("node 'n1' cannot read 'n2', only its own Node object")));
}

TEST(StatusErrorTest, IsOneShortLine) {
  const std::string huge = "a\n\tb\x1b[31m" + std::string(5000, 'x');
  const Error error =
      status_error("GET /x", status_from_body(422, status_body(422, "Invalid", huge)));
  EXPECT_LE(error.message.size(), kMaxMessageBytes);
  EXPECT_THAT(error.message, AllOf(HasSubstr(": a b [31mxxx"), EndsWith("x...")));
  EXPECT_LT(status_error("GET /x", status_from_body(500, std::string(5000, 'y'))).message.size(),
            error.message.size())
      << "a foreign body is not repeated at any length";
}

TEST(StatusErrorTest, SpeaksOfBodiesThatAreNoStatus) {
  const struct {
    int http;
    std::string body;
    const char* message;
  } table[] = {
      {502, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>nginx</body></html>",
       "GET /x: 502 Bad Gateway: 502 Bad Gateway nginx"},
      {404, "404 page not found\n", "GET /x: 404 Not Found: 404 page not found"},
      {503, "", "GET /x: 503 Service Unavailable"},
      {599, "", "GET /x: 599"},
      {400, "{\"kind\":\"Status\"}", "GET /x: 400 Bad Request: {\"kind\":\"Status\"}"},
      {400, "[1]", "GET /x: 400 Bad Request: [1]"},
      {503, R"({"kind":"Status","reason":"ServiceUnavailable"})",
       "GET /x: 503 Service Unavailable: ServiceUnavailable"},
      {403, R"({"kind":"Status","message":7,"code":"x","reason":"Forbidden","details":[]})",
       "GET /x: 403 Forbidden: Forbidden"},
  };
  for (const auto& row : table) {
    const Error error = status_error("GET /x", status_from_body(row.http, row.body));
    EXPECT_EQ(error.message, row.message);
    EXPECT_EQ("GET /x: " + error.reason(), row.message);
    EXPECT_EQ(error.request->http_status, row.http);
    EXPECT_EQ(error.request->stage == RequestFailure::Stage::kCredential, row.http == 403);
  }
}

TEST(OneLineTest, IsValidUtf8Always) {
  const struct {
    std::string text;
    std::size_t limit;
    const char* line;
  } table[] = {
      {"", 10, ""},
      {"  a \r\n\r\n b  ", 10, "a b"},
      {"a\xff\xfe z", 10, "a\xEF\xBF\xBD\xEF\xBF\xBD z"},
      {"caf\xc3\xa9", 10, "caf\xc3\xa9"},
      {"abcd\xc3\xa9\xc3\xa9", 7, "abcd..."},  // the sequence would not fit with the mark
      {std::string("a\0b", 3), 10, "a b"},
  };
  for (const auto& row : table) {
    EXPECT_EQ(one_line(row.text, row.limit), row.line);
  }
}

}  // namespace
}  // namespace slurmlet::kube
