#pragma once

// Reading JSON that others wrote, without ever throwing: every accessor takes what is there and
// returns nothing for a missing key, a null or another type. Used by the codecs of this
// component, and by status/ for what the daemon says of itself.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace slurmlet::kube {

// Parses one JSON value, leaving out metadata.managedFields (often half of an object, of no use
// here). kInvalid without quoting the text when it is not JSON.
Result<nlohmann::json> parse_json(std::string_view text);

// Compact text. Bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string to_text(const nlohmann::json& value);

// The member `key` if `object` is an object and has it other than null, else nullptr.
const nlohmann::json* find(const nlohmann::json& object, const char* key);

// The same, with null for what is not there: in it nothing is found either.
const nlohmann::json& member(const nlohmann::json& object, const char* key);

// The list `key`; an empty one if there is none.
const nlohmann::json& list_at(const nlohmann::json& object, const char* key);

// "" if absent or no string.
std::string string_at(const nlohmann::json& object, const char* key);
bool bool_at(const nlohmann::json& object, const char* key);
std::optional<std::int64_t> int_at(const nlohmann::json& object, const char* key);

// Sets a member that is left out when there is nothing in it: "", null, an empty list or map.
void put(nlohmann::json& object, const char* key, nlohmann::json value);

// The strings of an array; none of another type.
std::vector<std::string> strings_of(const nlohmann::json& array);

// The members of object `key` that are strings; numbers are taken as their text (quantities).
std::map<std::string, std::string> string_map_at(const nlohmann::json& object, const char* key);

}  // namespace slurmlet::kube
