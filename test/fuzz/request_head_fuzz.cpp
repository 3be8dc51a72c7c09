// Fuzzes the screening reader of requests (podapi/request_head.h). The first byte chooses how the
// rest is cut into pieces.
//
// Beside what the sanitizers find: pieces change nothing, no more is taken than the limit, and what
// is let through is well-formed by rules that are written down here a second time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "podapi/request_head.h"

namespace {

using slurmlet::podapi::HeadLimits;
using slurmlet::podapi::HeadReader;
using slurmlet::podapi::RequestHead;

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::size_t count(const RequestHead& head, std::string_view name) {
  return static_cast<std::size_t>(
      std::count_if(head.headers.begin(), head.headers.end(),
                    [&](const auto& header) { return header.first == name; }));
}

void require_well_formed(const RequestHead& head, std::string_view taken) {
  require(taken.size() >= 4 && taken.substr(taken.size() - 4) == "\r\n\r\n");
  require(taken.find("\r\n\r\n") == taken.size() - 4);
  require(std::count(taken.begin(), taken.end(), '\n') ==
          static_cast<std::ptrdiff_t>(head.headers.size()) + 2);
  require(std::count(taken.begin(), taken.end(), '\r') ==
          std::count(taken.begin(), taken.end(), '\n'));
  require(taken.substr(0, head.method.size() + 1) == head.method + " ");
  require(head.path.starts_with('/') && is_printable(head.path) && is_printable(head.query));
  require((head.path + head.query).find_first_of(" #\"<>\\^`{|}") == std::string::npos);
  require(count(head, "transfer-encoding") == 0 && count(head, "host") <= 1 &&
          count(head, "authorization") <= 1 && count(head, "content-length") <= 1);
  require(head.header("content-length").value_or("0") == "0");
  for (const auto& [name, value] : head.headers) {
    require(!name.empty() && is_printable(name) && name.find_first_of(" :") == std::string::npos);
    require(std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }));
    require(value.find_first_of("\r\n") == std::string::npos &&
            value.find('\0') == std::string::npos);
    require(value.empty() || (value.front() != ' ' && value.back() != ' '));
  }
}

bool same(const HeadReader& a, const HeadReader& b) {
  return a.state() == b.state() && a.rejection_status() == b.rejection_status() &&
         a.rejection() == b.rejection() && a.head().method == b.head().method &&
         a.head().path == b.head().path && a.head().query == b.head().query &&
         a.head().keep_alive == b.head().keep_alive && a.head().headers == b.head().headers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::size_t step = std::size_t{data[0]} + 1;
  const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
  HeadLimits limits;
  limits.max_bytes = 512;  // within reach of short inputs
  limits.max_target_bytes = 128;
  limits.max_headers = 8;

  HeadReader whole{limits};
  const std::size_t taken = whole.feed(text);
  HeadReader pieces{limits};
  std::size_t in_pieces = 0;
  for (std::size_t at = 0; at < text.size(); at += step) {
    in_pieces += pieces.feed(text.substr(at, step));
  }
  require(taken == in_pieces && same(whole, pieces));

  require(taken <= limits.max_bytes + 1 && taken <= text.size());
  switch (whole.state()) {
    case HeadReader::State::kIncomplete:
      require(taken == text.size());
      break;
    case HeadReader::State::kRejected:
      require(whole.rejection_status() >= 400 && !whole.rejection().empty());
      require(whole.head().headers.empty());
      break;
    case HeadReader::State::kComplete:
      require(whole.head().headers.size() <= limits.max_headers);
      require_well_formed(whole.head(), text.substr(0, taken));
      break;
  }
  whole.reset();
  require(!whole.has_begun() && whole.state() == HeadReader::State::kIncomplete);
  return 0;
}
