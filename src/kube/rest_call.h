#pragma once

// One request to the API server the way every class of this component makes it: counted, its clock
// noted, and with HTTP and transport failures as one kind of Error.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "http/client.h"
#include "kube/pace.h"
#include "kube/request_counter.h"

namespace slurmlet::kube {

// The kubelet's for a Lease. Nothing but a renewal (lease_thread.cpp) is worth blocking a loop for
// more.
inline constexpr Duration kCallTimeout = std::chrono::seconds{10};

struct CallOptions {
  RequestCounter* counter = nullptr;  // shared by all; may be null
  // Gets the server's clock (Date header, whole seconds) of each answer; may be empty. Called in
  // the client's thread.
  std::function<void(WallTime)> on_server_date = {};
  // Of a call, and when calls end together; streams are not bounded by them.
  Duration timeout = kCallTimeout;
  SteadyTime deadline = kNever;
  // Of the calls and streams of one client; may be null.
  Pace* pace = nullptr;
};

// Held by each class that makes calls.
class RestCaller {
 public:
  RestCaller(http::Client& client, CallOptions options)
      : client_(client), options_(std::move(options)) {}

 protected:
  http::Client& client_;
  CallOptions options_;
};

inline constexpr const char* kJson = "application/json";
inline constexpr const char* kJsonPatch = "application/json-patch+json";
inline constexpr const char* kMergePatch = "application/merge-patch+json";
inline constexpr const char* kStrategicMergePatch = "application/strategic-merge-patch+json";

// `verb` is what is counted: the method, or LIST. The timeout is that of `options`.
Result<http::Response> rest_call(http::Client& client, const http::Request& request,
                                 const CallOptions& options, const std::string& verb);

// The answer's body as JSON; kInternal when it is none.
Result<nlohmann::json> answer_json(const http::Request& request, const http::Response& response);

}  // namespace slurmlet::kube
