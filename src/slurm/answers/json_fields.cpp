#include "slurm/answers/json_fields.h"

#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kNoVal32 = 0xfffffffe;     // NO_VAL of slurm/slurm.h
constexpr std::int64_t kInfinite32 = 0xffffffff;  // INFINITE

struct Number {
  std::optional<std::int64_t> value;
  bool understood = true;
};

// NO_VAL64 and INFINITE64 are -2 and -1 as 64 bits with a sign, and come so where a writer takes
// them for signed (22.05, 23.02).
Number from_signed(std::int64_t value) {
  if (value == -1 || value == -2 || value == kNoVal32 || value == kInfinite32) {
    return {};
  }
  return value < 0 ? Number{std::nullopt, false} : Number{value, true};
}

Number from_float(double value) {
  constexpr double kLimit = 9.0e18;  // below 2^63
  if (!std::isfinite(value) || std::fabs(value) > kLimit) {
    return {std::nullopt, false};
  }
  return from_signed(std::llround(value));
}

Number plain_number(const Json& value) {
  if (value.is_number_integer()) {
    return from_signed(value.get<std::int64_t>());
  }
  if (value.is_number_float()) {
    return from_float(value.get<double>());
  }
  return {std::nullopt, false};
}

bool is_true(const Json& object, const char* key) {
  const auto* value = json_member(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

Number any_number(const Json& value) {
  if (!value.is_object()) {
    return plain_number(value);
  }
  const auto* number = json_member(value, "number");
  const auto* set = json_member(value, "set");
  if (number == nullptr || set == nullptr || !set->is_boolean()) {
    return {std::nullopt, false};
  }
  if (!set->get<bool>() || is_true(value, "infinite")) {
    return {};
  }
  return plain_number(*number);
}

const std::string& string_of(const Json& value) { return value.get_ref<const std::string&>(); }

}  // namespace

void Notes::add(std::string_view where, std::string_view what) {
  constexpr std::size_t kMaxLine = 120;
  if (lines_.size() < kMax) {
    std::string line{where};
    if (!what.empty()) {
      line.append(": ").append(what);
    }
    lines_.push_back(plain_text(line, kMaxLine));
  } else if (lines_.size() == kMax) {
    lines_.emplace_back("and more");
  }
}

const Json* json_member(const Json& object, const char* key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

void Fields::note(const char* name, std::string_view what) const {
  std::string where{path_};
  where.append(".").append(name);
  notes_.add(where, what);
}

const Json* Fields::get(Names names) const {
  for (const char* name : names) {
    const auto* value = json_member(object_, name);
    if (value != nullptr && !value->is_null()) {
      return value;
    }
  }
  return nullptr;
}

// Strings are null in 22.05 and 23.02 where they are not set.
std::string Fields::text(Names names) const {
  const auto* value = get(names);
  if (value == nullptr) {
    return "";
  }
  if (!value->is_string()) {
    note(*names.begin(), std::string{value->type_name()} + " instead of a string");
    return "";
  }
  const auto& text = string_of(*value);
  return text == "(null)" ? "" : text;
}

std::optional<std::int64_t> Fields::number(Names names) const {
  for (const char* name : names) {
    const auto* value = json_member(object_, name);
    if (value == nullptr) {
      continue;
    }
    const auto number = any_number(*value);
    if (!number.understood) {
      note(name, value->is_number() ? "out of range"
                                    : std::string{value->type_name()} + " instead of a number");
    }
    return number.value;
  }
  return std::nullopt;
}

std::optional<WallTime> Fields::time(Names names) const {
  constexpr std::int64_t kLast = 9'000'000'000;  // beyond it WallTime (64 bits of ns) ends
  const auto seconds = number(names);
  if (!seconds || *seconds == 0) {
    return std::nullopt;
  }
  if (*seconds > kLast) {
    note(*names.begin(), "out of range");
    return std::nullopt;
  }
  return WallTime{std::chrono::seconds{*seconds}};
}

std::optional<double> Fields::load(const std::optional<std::int64_t>& hundredths,
                                   const std::optional<std::int64_t>& free_memory_mib) {
  const auto load =
      hundredths ? std::optional{static_cast<double>(*hundredths) / 100} : std::nullopt;
  return reported_load(load, free_memory_mib);
}

std::vector<std::string> Fields::words(Names names) const {
  std::vector<std::string> words;
  const auto take = [&](std::string_view text) {
    for (const auto part : split(text, ',')) {
      if (const auto word = trim(part); !word.empty() && word != "(null)") {
        words.emplace_back(word);
      }
    }
  };
  const auto* value = get(names);
  if (value == nullptr) {
    return words;
  }
  if (value->is_string()) {
    take(string_of(*value));
  } else if (value->is_array()) {
    for (const auto& element : *value) {
      if (element.is_string()) {
        take(string_of(element));
      } else {
        note(*names.begin(), std::string{element.type_name()} + " instead of a string");
      }
    }
  } else {
    note(*names.begin(), std::string{value->type_name()} + " instead of a list");
  }
  return words;
}

}  // namespace slurmlet::slurm
