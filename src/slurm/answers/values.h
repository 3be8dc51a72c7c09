#pragma once

// Single values as Slurm's commands print them: words for "nothing", numbers, times. Pure but for
// the time zone.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/plain_text.h"

namespace slurmlet::slurm {

// Whether `word` is one of the words, between which stands one space each.
bool has_word(std::string_view words, std::string_view word);

// "", "(null)", "N/A", "n/a", "none", "None", "NONE", "Unknown", with or without white space
// around: what Slurm prints where there is no value.
bool is_nothing(std::string_view text);

// Valid UTF-8 without white space at the ends; "" for is_nothing().
std::string text_value(std::string_view text);

// text_value(), but "" for 4294967294: NO_VAL as uid, where Slurm itself did something.
std::string user_name(std::string_view text);

// "a,b" → "a", "b", each a text_value(); empty ones are left out.
std::vector<std::string> list_value(std::string_view text);

// A decimal number that is not negative; nothing for anything else.
std::optional<std::int64_t> number_value(std::string_view text);

// "0.58"; nothing for anything but digits with at most one point.
std::optional<double> load_value(std::string_view text);

// The CPU load that slurmd reported. Since 23.11 a node that never reported has 0.00 beside a free
// memory of N/A: that is no load.
std::optional<double> reported_load(const std::optional<double>& load,
                                    const std::optional<std::int64_t>& free_memory_mib);

// Seconds since the epoch (SLURM_TIME_FORMAT=%s), or "2026-11-20T23:43:00" in local time or with
// "Z" or an offset behind it. Nothing for other forms, for what is no date, and for times up to 0.
std::optional<WallTime> time_value(std::string_view text);

// What messages show of a text that was not understood, which may be huge.
inline std::string excerpt(std::string_view text, std::size_t limit = 80) {
  return plain_text(text.substr(0, 64 * limit), limit);
}

}  // namespace slurmlet::slurm
