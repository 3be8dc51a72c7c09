#include "podapi/health_handler.h"

namespace slurmlet::podapi {

std::optional<Response> HealthHandler::begin(RequestId, const Caller&, const RequestHead& head,
                                             Now) {
  return handle({head.method, head.path}, snapshot_());
}

std::vector<std::pair<RequestId, Response>> HealthHandler::take_answers(Now, SteadyTime&) {
  return {};
}

void HealthHandler::forget(RequestId) {}

}  // namespace slurmlet::podapi
