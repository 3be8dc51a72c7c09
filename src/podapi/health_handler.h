#pragma once

// The health port's requests, answered at once by routes.h: for a Server in plain mode on
// 127.0.0.1, as the kubelet has on 10248. Whoever has a shell on the node may ask.

#include <functional>
#include <string>
#include <utility>

#include "podapi/routes.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

class HealthHandler final : public RequestHandler {
 public:
  // `snapshot` is called for each request, in the Server's step(): it must be quick. `status_json`
  // likewise, for /status only; without it that is not served.
  explicit HealthHandler(std::function<Snapshot()> snapshot,
                         std::function<std::string()> status_json = {})
      : snapshot_(std::move(snapshot)), status_json_(std::move(status_json)) {}

  std::optional<Response> begin(RequestId id, const Caller& caller, const RequestHead& head,
                                Now now) override;

 private:
  std::function<Snapshot()> snapshot_;
  std::function<std::string()> status_json_;
};

}  // namespace slurmlet::podapi
