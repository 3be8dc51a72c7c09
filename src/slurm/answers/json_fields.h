#pragma once

// Reading what Slurm wrote as JSON, without ever throwing: a member that is missing, null or of
// another type is "not reported", and what could not be used is noted for people. Internal to the
// JSON parsers of this component. Pure.

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace slurmlet::slurm {

// What was not understood, as short lines of valid text. At most kMax of them: a dump of thousands
// of nodes that all have a new field says so often enough.
class Notes {
 public:
  static constexpr std::size_t kMax = 100;
  void add(std::string_view where, std::string_view what = {});
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

// The member `key` if `object` is an object that has it, else nullptr.
const nlohmann::json* json_member(const nlohmann::json& object, const char* key);

// The members of one object. Every accessor takes the names that releases gave the same thing and
// uses the first that is there and is not null. An object that is none has no members.
class Fields {
 public:
  using Names = std::initializer_list<const char*>;

  // All three must outlive this.
  Fields(const nlohmann::json& object, std::string_view path, Notes& notes)
      : object_{object}, path_{path}, notes_{notes} {}

  const nlohmann::json* get(Names names) const;
  std::string text(Names names) const;
  // A number, or Slurm's {set, infinite, number}. Nothing for what stands for no value (not set,
  // infinite, NO_VAL and INFINITE of 32 and 64 bits); other negative numbers are noted. Fractions
  // are rounded.
  std::optional<std::int64_t> number(Names names) const;
  // The same for seconds since 1970; 0 is no time.
  std::optional<WallTime> time(Names names) const;
  // Slurm's hundredths of runnable processes as reported_load().
  static std::optional<double> load(const std::optional<std::int64_t>& hundredths,
                                    const std::optional<std::int64_t>& free_memory_mib);
  // A list of strings, or one string with commas.
  std::vector<std::string> words(Names names) const;
  void note(const char* name, std::string_view what) const;

 private:
  const nlohmann::json& object_;
  std::string_view path_;
  Notes& notes_;
};

}  // namespace slurmlet::slurm
