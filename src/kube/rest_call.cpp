#include "kube/rest_call.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/json_read.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

Result<http::Response> rest_call(http::Client& client, const http::Request& request,
                                 const CallOptions& options, const std::string& verb) {
  const SteadyTime now = std::chrono::steady_clock::now();
  if (now >= options.deadline) {
    return Error{Code::kTimeout, request_name(request) + ": time limit exceeded"};
  }
  const Duration limit = std::min(options.longest, options.deadline - now);
  if (request.timeout > limit) {
    http::Request shorter = request;
    shorter.timeout = limit;
    return rest_call(client, shorter, {options.counter, options.on_server_date}, verb);
  }
  auto response = client.call(request);
  if (options.counter != nullptr) {
    options.counter->count(verb, response ? response->status : 0);
  }
  if (!response) {
    return response.error();  // names the request already
  }
  if (options.on_server_date && response->server_date) {
    options.on_server_date(*response->server_date);
  }
  if (response->status >= 200 && response->status <= 299) {
    return response;
  }
  return status_error(request_name(request),
                      status_from_body(response->status, response->body, response->retry_after));
}

Result<nlohmann::json> answer_json(const http::Request& request, const http::Response& response) {
  auto value = parse_json(response.body);
  if (!value) {
    return Error{Code::kInternal, request_name(request) + ": the answer is not valid JSON"};
  }
  return value;
}

}  // namespace slurmlet::kube
