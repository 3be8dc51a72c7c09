#include "base/rfc3339.h"

#include <fmt/format.h>

#include <charconv>
#include <ctime>

namespace slurmlet {
namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::seconds;

std::tm utc(std::int64_t unix_seconds) {
  const std::time_t t = unix_seconds;
  std::tm out{};
  gmtime_r(&t, &out);
  return out;
}

// Reads exactly `width` digits from the front of `text`.
bool take_digits(std::string_view& text, std::size_t width, int& out) {
  if (text.size() < width) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + width, out);
  if (error != std::errc{} || end != text.data() + width || text.front() == '-') {
    return false;
  }
  text.remove_prefix(width);
  return true;
}

bool take_char(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

bool take_offset(std::string_view& text, int& offset_seconds) {
  offset_seconds = 0;
  if (take_char(text, 'Z') || take_char(text, 'z')) {
    return text.empty();
  }
  const int sign = take_char(text, '+') ? 1 : take_char(text, '-') ? -1 : 0;
  int hour = 0;
  int minute = 0;
  if (sign == 0 || !take_digits(text, 2, hour) || !take_char(text, ':') ||
      !take_digits(text, 2, minute) || hour > 23 || minute > 59) {
    return false;
  }
  offset_seconds = sign * (hour * 3600 + minute * 60);
  return text.empty();
}

// Whether the day exists and WallTime, which counts nanoseconds, reaches it (1677 to 2262).
bool is_representable(int year, int month, int day) {
  const std::chrono::year_month_day date{std::chrono::year{year},
                                         std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  return date.ok() && year > 1677 && year < 2262;
}

std::int64_t floor_seconds(WallTime time) {
  return std::chrono::floor<seconds>(time).time_since_epoch().count();
}

}  // namespace

std::string rfc3339(WallTime time) {
  const std::tm t = utc(floor_seconds(time));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", t.tm_year + 1900, t.tm_mon + 1,
                     t.tm_mday, t.tm_hour, t.tm_min, t.tm_sec);
}

std::string rfc3339_micro(WallTime time) {
  const auto micros = duration_cast<microseconds>(time - std::chrono::floor<seconds>(time)).count();
  std::string text = rfc3339(time);
  text.pop_back();
  return text + fmt::format(".{:06}Z", micros);
}

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  std::tm t{};
  int year = 0;
  int month = 0;
  if (!take_digits(text, 4, year) || !take_char(text, '-') || !take_digits(text, 2, month) ||
      !take_char(text, '-') || !take_digits(text, 2, t.tm_mday) ||
      !(take_char(text, 'T') || take_char(text, 't')) || !take_digits(text, 2, t.tm_hour) ||
      !take_char(text, ':') || !take_digits(text, 2, t.tm_min) || !take_char(text, ':') ||
      !take_digits(text, 2, t.tm_sec)) {
    return std::nullopt;
  }
  std::int64_t micros = 0;
  if (take_char(text, '.')) {
    std::int64_t scale = 100000;
    bool any = false;
    while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
      micros += (text.front() - '0') * scale;
      scale /= 10;
      text.remove_prefix(1);
      any = true;
    }
    if (!any) {
      return std::nullopt;
    }
  }
  int offset = 0;
  if (!take_offset(text, offset) || month < 1 || month > 12 || t.tm_mday < 1 || t.tm_mday > 31 ||
      t.tm_hour > 23 || t.tm_min > 59 || t.tm_sec > 60 ||
      !is_representable(year, month, t.tm_mday)) {
    return std::nullopt;
  }
  t.tm_year = year - 1900;
  t.tm_mon = month - 1;
  const std::int64_t unix_seconds = timegm(&t) - offset;
  return WallTime{seconds{unix_seconds} + microseconds{micros}};
}

}  // namespace slurmlet
