#include "kube/status_error.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/plain_text.h"
#include "base/text.h"
#include "kube/json_read.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

constexpr std::size_t kMaxForeignBodyBytes = 160;

struct Meaning {
  int status;
  std::string_view phrase;
  Code code;
};

// What API servers and proxies answer, with the phrases of RFC 9110 and 6585.
const Meaning& meaning_of(int status) {
  static constexpr Meaning kOther{0, "", Code::kInternal};
  static constexpr std::array kMeanings = std::to_array<Meaning>({
      {400, "Bad Request", Code::kInvalid},
      {401, "Unauthorized", Code::kDenied},
      {403, "Forbidden", Code::kDenied},
      {404, "Not Found", Code::kNotFound},
      {405, "Method Not Allowed", Code::kInvalid},
      {406, "Not Acceptable", Code::kInvalid},
      {407, "Proxy Authentication Required", Code::kDenied},
      {408, "Request Timeout", Code::kTimeout},
      {409, "Conflict", Code::kConflict},
      {410, "Gone", Code::kGone},
      {413, "Content Too Large", Code::kInvalid},
      {415, "Unsupported Media Type", Code::kInvalid},
      {422, "Unprocessable Content", Code::kInvalid},
      {429, "Too Many Requests", Code::kUnavailable},
      {500, "Internal Server Error", Code::kInternal},
      {501, "Not Implemented", Code::kInternal},
      {502, "Bad Gateway", Code::kUnavailable},
      {503, "Service Unavailable", Code::kUnavailable},
      {504, "Gateway Timeout", Code::kTimeout},
      {505, "HTTP Version Not Supported", Code::kInternal},
  });
  const auto found = std::find_if(kMeanings.begin(), kMeanings.end(),
                                  [status](const Meaning& row) { return row.status == status; });
  return found == kMeanings.end() ? kOther : *found;
}

std::string foreign_message(std::string_view body) {
  const std::string_view text = trim(body);
  if (text.empty()) {
    return "";
  }
  return one_line(text.front() == '<' ? without_tags(text) : std::string(text),
                  kMaxForeignBodyBytes);
}

}  // namespace

std::string one_line(std::string_view text, std::size_t max_bytes) {
  return plain_text(text, max_bytes);
}

std::optional<ApiStatus> status_from_json(const json& value) {
  if (string_at(value, "kind") != "Status") {
    return std::nullopt;
  }
  ApiStatus status;
  status.code = static_cast<int>(int_at(value, "code").value_or(0) % 1000);
  status.reason = string_at(value, "reason");
  status.message = string_at(value, "message");
  const json& details = member(value, "details");
  const auto seconds = int_at(details, "retryAfterSeconds").value_or(0);
  if (seconds > 0 && seconds < 86400) {
    status.retry_after = std::chrono::seconds{seconds};
  }
  const json& causes = list_at(details, "causes");
  status.version_too_large = std::any_of(causes.begin(), causes.end(), [](const json& cause) {
    return string_at(cause, "reason") == "ResourceVersionTooLarge";
  });
  return status;
}

ApiStatus status_from_body(int http_status, std::string_view body,
                           std::optional<Duration> retry_after) {
  ApiStatus status;
  if (const auto value = parse_json(body); value) {
    status = status_from_json(*value).value_or(ApiStatus{});
  }
  if (status.message.empty() && status.reason.empty()) {
    status.message = foreign_message(body);
  }
  status.code = http_status;
  if (!status.retry_after) {
    status.retry_after = retry_after;
  }
  return status;
}

Code code_of(const ApiStatus& status) {
  if (status.reason == "Expired" || status.reason == "Gone" || status.version_too_large) {
    return Code::kGone;
  }
  // From a load balancer, or an unserved path: says nothing about the object.
  if (status.code == 404 && status.reason != "NotFound") {
    return Code::kInternal;
  }
  if (status.code == 500 && (status.reason == "Timeout" || status.reason == "ServerTimeout")) {
    return Code::kTimeout;
  }
  if (status.code == 500 && status.retry_after) {
    return Code::kUnavailable;
  }
  return meaning_of(status.code).code;
}

std::string request_name(const http::Request& request) {
  return request.method + " " + request.path.substr(0, request.path.find('?'));
}

Error status_error(const std::string& request_name, const ApiStatus& status) {
  RequestFailure failure{RequestFailure::Stage::kAnswer, status.code, std::to_string(status.code)};
  std::string& reason = failure.reason;
  if (const std::string_view words = meaning_of(status.code).phrase; !words.empty()) {
    reason.append(" ").append(words);
  }
  const std::string& detail = status.message.empty() ? status.reason : status.message;
  if (!detail.empty()) {
    reason.append(": ").append(detail);
  }
  reason = one_line(reason);
  const Code code = code_of(status);
  if (code == Code::kDenied) {
    failure.stage = RequestFailure::Stage::kCredential;
  }
  return {code, one_line(request_name + ": " + reason), status.retry_after, std::move(failure)};
}

}  // namespace slurmlet::kube
