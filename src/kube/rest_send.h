#pragma once

// Calls whose answer is one object, or of no use. Internal to the component.

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "http/client.h"
#include "kube/rest_call.h"
#include "kube/status_error.h"

namespace slurmlet::kube {

// Sends and reads the object in the answer with `decode`.
template <typename T>
Result<T> send_for(http::Client& client, const CallOptions& options, const http::Request& request,
                   const std::function<Result<T>(const nlohmann::json&)>& decode) {
  const auto response = TRY(rest_call(client, request, options, request.method));
  const auto value = TRY(answer_json(request, response));
  auto object = decode(value);
  if (!object) {
    return Error{Code::kInternal,
                 request_name(request) + ": the answer is " + object.error().message};
  }
  return object;
}

template <typename T>
Result<T> send_for(http::Client& client, const CallOptions& options, const http::Request& request,
                   Result<T> (*decode)(const nlohmann::json&)) {
  return send_for<T>(client, options, request, std::function{decode});
}

// Sends; of the answer only whether it is an error.
inline Status send_only(http::Client& client, const CallOptions& options,
                        const http::Request& request) {
  TRY(rest_call(client, request, options, request.method));
  return {};
}

}  // namespace slurmlet::kube
