#include "base/result.h"

namespace slurmlet {

const char* to_string(Code code) {
  switch (code) {
    case Code::kUnavailable:
      return "Unavailable";
    case Code::kTimeout:
      return "Timeout";
    case Code::kNotFound:
      return "NotFound";
    case Code::kConflict:
      return "Conflict";
    case Code::kDenied:
      return "Denied";
    case Code::kInvalid:
      return "Invalid";
    case Code::kGone:
      return "Gone";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kInternal:
      return "Internal";
  }
  return "Internal";
}

}  // namespace slurmlet
