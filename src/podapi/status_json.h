#pragma once

// Rejections in the form that clients read: the API's Status object
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/), but plain text
// for /containerLogs, since the API server's log streamer wraps any body in a Status of its own.
// Pure.

#include <string>
#include <string_view>

#include "podapi/routes.h"

namespace slurmlet::podapi {

struct Rejection {
  int code = 0;                 // HTTP status
  std::string reason;           // metav1.StatusReason: "Forbidden", "NotFound", …
  std::string message;          // for people, one line
  int retry_after_seconds = 0;  // 0 = none
};

Response status_response(const Rejection& rejection);
// A Status object, or plain text where clients of this normalized_path() read that.
Response rejection_response(std::string_view path, const Rejection& rejection);

}  // namespace slurmlet::podapi
