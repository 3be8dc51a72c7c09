#include "http/response_head.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "http/curl_handle.h"

namespace slurmlet::http {
namespace {

std::optional<WallTime> parse_http_date(std::string_view text) {
  const std::time_t seconds = curl_getdate(std::string{text}.c_str(), nullptr);
  if (seconds < 0) {
    return std::nullopt;
  }
  return std::chrono::system_clock::from_time_t(seconds);
}

}  // namespace

void ResponseHead::add_line(std::string_view line) {
  line = trim(line);
  if (line.starts_with("HTTP/")) {
    *this = {};
    const auto space = line.find(' ');
    if (space != std::string_view::npos) {
      status_ = parse_int<int>(line.substr(space + 1, 3)).value_or(0);
    }
    return;
  }
  if (line.empty()) {
    complete_ = status_ >= 200;
    return;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || complete_) {
    return;  // trailers of a chunked body are of no interest
  }
  const std::string name = to_lower(line.substr(0, colon));
  const std::string_view value = trim(line.substr(colon + 1));
  if (name == "date") {
    date_ = parse_http_date(value);
  } else if (name == "retry-after") {
    retry_after_ = value;
  }
}

std::optional<Duration> ResponseHead::retry_after() const {
  if (const auto seconds = parse_int<std::int32_t>(retry_after_)) {
    if (*seconds < 0) {
      return std::nullopt;
    }
    return std::chrono::seconds{*seconds};
  }
  const auto then = parse_http_date(retry_after_);
  if (!then || !date_) {
    return std::nullopt;
  }
  return std::max(Duration{}, std::chrono::duration_cast<Duration>(*then - *date_));
}

}  // namespace slurmlet::http
