#include "kube/rest_call.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/json_read.h"
#include "kube/status_error.h"

namespace slurmlet::kube {
namespace {

// The `timeout` parameter, a fifth shorter than the client's own: an overloaded server then answers
// 429 before the client closes the connection, and drops requests that no client waits for.
std::string server_timeout(const std::string& path, Duration client_timeout) {
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(client_timeout * 4 / 5);
  return (path.find('?') == std::string::npos ? "?timeout=" : "&timeout=") +
         std::to_string(std::max<long>(limit.count(), 1)) + "ms";
}

}  // namespace

Result<http::Response> rest_call(http::Client& client, const http::Request& request,
                                 const CallOptions& options, const std::string& verb) {
  const SteadyTime now = std::chrono::steady_clock::now();
  if (now >= options.deadline) {
    return Error{Code::kTimeout, request_name(request) + ": time limit exceeded"};
  }
  if (options.pace != nullptr) {
    if (auto error = options.pace->backing_off(request_name(request))) {
      return *std::move(error);
    }
  }
  http::Request bounded = request;
  bounded.timeout = std::min(options.timeout, options.deadline - now);
  bounded.path += server_timeout(request.path, bounded.timeout);
  auto response = client.call(bounded);
  if (options.counter != nullptr) {
    options.counter->count(verb, response ? response->status : 0);
  }
  if (response && options.on_server_date && response->server_date) {
    options.on_server_date(*response->server_date);
  }
  if (response && (response->status < 200 || response->status > 299)) {
    response =
        status_error(request_name(request),
                     status_from_body(response->status, response->body, response->retry_after));
  }
  if (options.pace != nullptr) {
    response ? options.pace->answered() : options.pace->failed(response.error());
  }
  return response;  // an error names the request already
}

Result<nlohmann::json> answer_json(const http::Request& request, const http::Response& response) {
  auto value = parse_json(response.body);
  if (!value) {
    return Error{Code::kInternal, request_name(request) + ": the answer is not valid JSON"};
  }
  return value;
}

}  // namespace slurmlet::kube
