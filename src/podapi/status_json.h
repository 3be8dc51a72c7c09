#pragma once

// Refusals in the form that clients read. Most take the API's Status object
// (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/). The exception
// is /containerLogs: the API server's log streamer makes a Status of its own around the body,
// whatever that is, so there the bare sentence is what reaches the user of kubectl in one piece.
// Pure.

#include <string>
#include <string_view>

#include "podapi/routes.h"

namespace slurmlet::podapi {

struct Refusal {
  int code = 0;                 // HTTP status
  std::string reason;           // metav1.StatusReason: "Forbidden", "NotFound", …
  std::string message;          // for people, one line
  int retry_after_seconds = 0;  // 0 = not said
};

// As a Status object.
Response status_response(const Refusal& refusal);
// Whichever the clients of this path (as normalized_path() gives it) read: such an object, or the
// message alone as plain text.
Response refusal_response(std::string_view path, const Refusal& refusal);

}  // namespace slurmlet::podapi
