#pragma once

// Collects status and the few headers that matter while libcurl hands over header lines one by one
// (RFC 9110). Pure. Internal to the component.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace slurmlet::http {

class ResponseHead {
 public:
  // One line, with or without its line end. A status line starts over: interim (1xx) responses and
  // a request repeated on another connection come first.
  void add_line(std::string_view line);

  // Whether the final response's headers are all there.
  bool complete() const { return complete_; }
  // Status of the final response, 0 until complete.
  int status() const { return complete_ ? status_ : 0; }
  std::optional<WallTime> date() const { return date_; }
  // Retry-After, in either form; a date counts from the Date header and is nothing without it.
  std::optional<Duration> retry_after() const;

 private:
  int status_ = 0;
  bool complete_ = false;
  std::optional<WallTime> date_;
  std::string retry_after_;
};

}  // namespace slurmlet::http
