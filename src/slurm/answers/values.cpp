#include "slurm/answers/values.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "2026-11-20T23:43:00", the form of every Slurm command without SLURM_TIME_FORMAT.
constexpr std::string_view kDateShape = "dddd-dd-ddTdd:dd:dd";

bool has_date_shape(std::string_view text) {
  return text.size() == kDateShape.size() &&
         std::equal(text.begin(), text.end(), kDateShape.begin(),
                    [](char c, char shape) { return shape == 'd' ? is_digit(c) : c == shape; });
}

// Beyond it WallTime, 64 bits of nanoseconds, ends (in the year 2262).
constexpr std::int64_t kLastSecond = 9'000'000'000;

std::optional<WallTime> local_time(std::string_view text) {
  std::tm parts{};
  parts.tm_isdst = -1;
  if (::strptime(std::string{text}.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr ||
      parts.tm_sec > 60) {
    return std::nullopt;
  }
  const int day = parts.tm_mday;
  const std::time_t seconds = std::mktime(&parts);
  // mktime() turns February 30 into March 2.
  if (seconds <= 0 || seconds > kLastSecond || parts.tm_mday != day) {
    return std::nullopt;
  }
  return WallTime{std::chrono::seconds{seconds}};
}

}  // namespace

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const auto next = words.substr(0, words.find(' '));
    if (next == word) {
      return true;
    }
    words.remove_prefix(std::min(next.size() + 1, words.size()));
  }
  return false;
}

bool is_nothing(std::string_view text) {
  text = trim(text);
  return text.empty() || has_word("(null) N/A n/a none None NONE Unknown", text);
}

std::string text_value(std::string_view text) {
  return is_nothing(text) ? std::string{} : valid_utf8(trim(text));
}

std::string user_name(std::string_view text) {
  return trim(text) == "4294967294" ? std::string{} : text_value(text);
}

std::vector<std::string> list_value(std::string_view text) {
  std::vector<std::string> out;
  for (const auto part : split(text, ',')) {
    if (auto word = text_value(part); !word.empty()) {
      out.push_back(std::move(word));
    }
  }
  return out;
}

std::optional<std::int64_t> number_value(std::string_view text) {
  text = trim(text);
  if (text.empty() || !is_digit(text.front())) {
    return std::nullopt;
  }
  return parse_int<std::int64_t>(text);
}

std::optional<double> load_value(std::string_view text) {
  text = trim(text);
  const bool plain = !text.empty() && text.size() <= 32 && is_digit(text.front()) &&
                     std::count(text.begin(), text.end(), '.') <= 1 &&
                     text.find_first_not_of("0123456789.") == std::string_view::npos;
  double value = 0;
  if (!plain || std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> reported_load(const std::optional<double>& load,
                                    const std::optional<std::int64_t>& free_memory_mib) {
  return load == 0.0 && !free_memory_mib ? std::nullopt : load;
}

std::optional<WallTime> time_value(std::string_view text) {
  text = trim(text);
  if (const auto seconds = number_value(text)) {
    return *seconds > 0 && *seconds <= kLastSecond
               ? std::optional{WallTime{std::chrono::seconds{*seconds}}}
               : std::nullopt;
  }
  if (!has_date_shape(text.substr(0, kDateShape.size()))) {
    return std::nullopt;
  }
  return text.size() == kDateShape.size() ? local_time(text) : parse_rfc3339(text);
}

}  // namespace slurmlet::slurm
