#include "podapi/health_handler.h"

namespace slurmlet::podapi {

std::optional<Response> HealthHandler::begin(RequestId, const Caller&, const RequestHead& head,
                                             Now) {
  Snapshot snapshot = snapshot_();
  if (head.path == kStatusPath && status_json_) {
    snapshot.status_json = status_json_();
  }
  return handle({head.method, head.path}, snapshot);
}

}  // namespace slurmlet::podapi
