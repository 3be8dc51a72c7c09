#pragma once

// How a node holds back from an API server that cannot keep up: after a request without an answer
// in time, or one that was answered 429, 503 or 504, it sends none of those that share this Pace
// for a growing while. So a thousand nodes that wait for their answers send less and less, whatever
// each of them has left to do, and the overload ends with its cause. Renewals of the Lease have
// none: they come first. Nor have Events, which are limited per namespace
// (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#eventratelimit).
//
// Not thread-safe: shared by the calls of one http::Client.

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/delay.h"
#include "base/result.h"

namespace slurmlet::kube {

class Pace {
 public:
  // `clock` must outlive it.
  Pace(const Clock& clock, Random random)
      : clock_(clock), backoff_(Delay::kOverloaded, std::move(random)) {}

  SteadyTime not_before() const { return not_before_; }
  // The Error of a request that is not sent now; nothing: it may be sent.
  std::optional<Error> backing_off(const std::string& request_name) const {
    const SteadyTime now = clock_.now().steady;
    if (now >= not_before_) {
      return std::nullopt;
    }
    Error error = cause_;
    error.message = request_name + ": not sent yet, after " + cause_.message;
    error.retry_after = not_before_ - now;
    return error;
  }

  void failed(const Error& error) {
    const int status = error.request ? error.request->http_status : 0;
    if (error.code == Code::kTimeout || status == 429 || status == 503 || status == 504) {
      cause_ = error;
      not_before_ = clock_.now().steady + backoff_.next(error.retry_after);
    } else if (status != 0) {
      answered();
    }
  }
  void answered() {
    backoff_.reset();
    not_before_ = {};
  }

 private:
  const Clock& clock_;
  Backoff backoff_;
  SteadyTime not_before_{};
  Error cause_;
};

}  // namespace slurmlet::kube
