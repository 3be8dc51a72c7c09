#pragma once

// String helpers that the standard library of C++20 lacks.

#include <charconv>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slurmlet {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
// Without white space (" \t\r\n") at both ends.
std::string_view trim(std::string_view text);
// The text of a file without the byte order mark that some editors put before UTF-8. kInvalid, to
// be put behind the file's name, where it is UTF-16.
Result<std::string_view> utf8_text(std::string_view text);
// Split at each `separator`; "" gives one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// The parts between white space, in order; none empty.
std::vector<std::string_view> words(std::string_view text);
// Behind `key` on the first line that begins with it, without white space around; "" if none does.
std::string_view value_behind(std::string_view key, std::string_view text);
bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words);
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
// Whether each of its characters is an ASCII letter, a digit or one of `more`; of "" all are.
bool all_alnum(std::string_view text, std::string_view more = "");
// "1 node", "2 nodes"
template <std::integral T>
std::string counted(T count, std::string_view what) {
  return std::to_string(count).append(" ").append(what).append(count == 1 ? "" : "s");
}
// Everything but letters, digits and "-._~" as %XX (RFC 3986 section 2.3).
std::string url_encode(std::string_view text);

// All of `text` as a number, else nothing (white space is not allowed).
template <std::integral T>
std::optional<T> parse_int(std::string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

// Of `candidates` the one nearest to `word` by edit distance, if near enough to be what was meant.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

// FNV-1a: the same on every machine and in every release, for per-node phases.
std::uint64_t stable_hash(std::string_view text);

}  // namespace slurmlet
