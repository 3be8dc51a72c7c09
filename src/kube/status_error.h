#pragma once

// What an HTTP answer of the API server means: the meta/v1 Status object in the body of 4xx and 5xx
// answers becomes an Error whose Code decides about retries
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/). Answers of
// proxies and load balancers, which are no Status, give a readable short message too.
//
// The message reads "PATCH /api/v1/nodes/n1/status: 403 Forbidden: <server's words>": one line,
// at most kMaxMessageBytes, valid UTF-8. Pure functions.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/client.h"

namespace slurmlet::kube {

inline constexpr std::size_t kMaxMessageBytes = 512;

struct ApiStatus {
  int code = 0;         // HTTP status
  std::string reason;   // machine-readable: "NotFound", "AlreadyExists", "Expired", …
  std::string message;  // for people
  std::optional<Duration> retry_after;  // details.retryAfterSeconds or the Retry-After header
  // A resourceVersion that the server has not seen yet, as after a restored backup.
  bool version_too_large = false;
};

// Reads a Status object; nothing if `value` is none.
std::optional<ApiStatus> status_from_json(const nlohmann::json& value);

// The Status in `body`, or what can be said about a body that is none. `retry_after` is the header.
ApiStatus status_from_body(int http_status, std::string_view body,
                           std::optional<Duration> retry_after = {});

Code code_of(const ApiStatus& status);

// "GET /api/v1/nodes/n1": without the query.
std::string request_name(const http::Request& request);

Error status_error(const std::string& request_name, const ApiStatus& status);

// One line of valid UTF-8 without control characters, at most `max_bytes` long; a cut is marked.
std::string one_line(std::string_view text, std::size_t max_bytes = kMaxMessageBytes);

}  // namespace slurmlet::kube
