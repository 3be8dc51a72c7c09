#include "base/rfc3339.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <charconv>

namespace slurmlet {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// Whether `text` begins like `form`, in which 0 is any digit and T may be small.
bool begins_like(std::string_view text, std::string_view form) {
  return text.size() >= form.size() &&
         std::equal(form.begin(), form.end(), text.begin(), [](char wanted, char c) {
           return wanted == '0' ? c >= '0' && c <= '9' : c == wanted || (wanted == 'T' && c == 't');
         });
}

// Of `width` digits.
int number_at(std::string_view text, std::size_t at, std::size_t width) {
  int number = 0;
  std::from_chars(text.data() + at, text.data() + at + width, number);
  return number;
}

std::optional<seconds> offset_from(std::string_view text) {
  if (text == "Z" || text == "z") {
    return seconds{0};
  }
  if (text.size() != 6 || !(text.front() == '+' || text.front() == '-') ||
      !begins_like(text.substr(1), "00:00")) {
    return std::nullopt;
  }
  const int hour = number_at(text, 1, 2);
  const int minute = number_at(text, 4, 2);
  if (hour > 23 || minute > 59) {
    return std::nullopt;
  }
  return seconds{(text.front() == '-' ? -1 : 1) * (hour * 3600 + minute * 60)};
}

}  // namespace

std::string rfc3339(WallTime time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::floor<seconds>(time)));
}

std::string rfc3339_micro(WallTime time) {
  const auto fraction = time - std::chrono::floor<seconds>(time);
  std::string text = rfc3339(time);
  text.pop_back();
  return text + fmt::format(".{:06}Z", std::chrono::floor<microseconds>(fraction).count());
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  constexpr std::size_t kMicroDigits = 6;
  if (!begins_like(text, kForm)) {
    return std::nullopt;
  }
  const int year = number_at(text, 0, 4);
  const std::chrono::year_month_day date{
      std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(number_at(text, 5, 2))},
      std::chrono::day{static_cast<unsigned>(number_at(text, 8, 2))}};
  const std::chrono::hours hour{number_at(text, 11, 2)};
  const std::chrono::minutes minute{number_at(text, 14, 2)};
  const seconds second{number_at(text, 17, 2)};
  text.remove_prefix(kForm.size());
  microseconds micros{0};
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    std::string digits{text.substr(0, text.find_first_not_of("0123456789"))};
    if (digits.empty()) {
      return std::nullopt;
    }
    text.remove_prefix(digits.size());
    digits.resize(kMicroDigits, '0');
    micros = microseconds{number_at(digits, 0, kMicroDigits)};
  }
  const auto offset = offset_from(text);
  // WallTime, which counts nanoseconds, reaches from 1677 to 2262.
  if (!offset || !date.ok() || year <= 1677 || year >= 2262 || hour.count() > 23 ||
      minute.count() > 59 || second.count() > 60) {
    return std::nullopt;
  }
  return std::chrono::sys_days{date} + hour + minute + second - *offset + micros;
}

}  // namespace slurmlet
