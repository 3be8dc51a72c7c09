#pragma once

// Calls whose answer is one object, or of no use. Internal to the component.

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "http/client.h"
#include "kube/rest_call.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

// Sends and reads the object in the answer with `decode`.
template <typename T>
Result<T> send_for(http::Client& client, const CallOptions& options, const http::Request& request,
                   Result<T> (*decode)(const nlohmann::json&)) {
  const auto response = rest_call(client, request, options, request.method);
  if (!response) {
    return response.error();
  }
  const auto value = answer_json(request, *response);
  if (!value) {
    return value.error();
  }
  auto object = decode(*value);
  if (!object) {
    return Error{Code::kInternal,
                 request_name(request) + ": the answer is " + object.error().message};
  }
  return object;
}

// Sends; of the answer only whether it is an error.
inline Status send_only(http::Client& client, const CallOptions& options,
                        const http::Request& request) {
  const auto response = rest_call(client, request, options, request.method);
  return response ? Status{} : Status{response.error()};
}

}  // namespace slurmlet::kube
