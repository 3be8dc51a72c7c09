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
#include "kube/request_counter.h"

namespace slurmlet::kube {

struct CallOptions {
  RequestCounter* counter = nullptr;  // shared by all; may be null
  // Gets the server's clock (Date header, whole seconds) of each answer; may be empty. Called in
  // the client's thread.
  std::function<void(WallTime)> on_server_date;
  // Of a call, and when calls end together; streams are not bounded by them.
  Duration longest = Duration::max();
  SteadyTime deadline = kNever;
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

// The lease's deadline equals the kubelet's (min(10 s, lease duration)); nothing else is urgent
// enough for less, but for CallOptions::longest, or worth blocking the loop for more.
inline constexpr Duration kCallTimeout = std::chrono::seconds{10};

inline constexpr const char* kJson = "application/json";
inline constexpr const char* kJsonPatch = "application/json-patch+json";
inline constexpr const char* kMergePatch = "application/merge-patch+json";
inline constexpr const char* kStrategicMergePatch = "application/strategic-merge-patch+json";

// `verb` is what is counted: the method, or LIST.
Result<http::Response> rest_call(http::Client& client, const http::Request& request,
                                 const CallOptions& options, const std::string& verb);

// The answer's body as JSON; kInternal when it is none.
Result<nlohmann::json> answer_json(const http::Request& request, const http::Response& response);

}  // namespace slurmlet::kube
