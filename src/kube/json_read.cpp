#include "kube/json_read.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace slurmlet::kube {

using nlohmann::json;

Result<json> parse_json(std::string_view text) {
  const auto keep = [](int, json::parse_event_t event, json& parsed) {
    if (event != json::parse_event_t::key) {
      return true;
    }
    const auto* key = parsed.get_ptr<const json::string_t*>();
    return key == nullptr || *key != "managedFields";
  };
  json value = json::parse(text, keep, /*allow_exceptions=*/false);
  if (value.is_discarded()) {
    return Error{Code::kInvalid, "not valid JSON"};
  }
  return value;
}

std::string to_text(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

const json* find(const json& object, const char* key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto member = object.find(key);
  return member == object.end() || member->is_null() ? nullptr : &*member;
}

std::string string_at(const json& object, const char* key) {
  const json* member = find(object, key);
  const auto* text = member == nullptr ? nullptr : member->get_ptr<const json::string_t*>();
  return text == nullptr ? std::string{} : *text;
}

bool bool_at(const json& object, const char* key) {
  const json* member = find(object, key);
  const auto* flag = member == nullptr ? nullptr : member->get_ptr<const json::boolean_t*>();
  return flag != nullptr && *flag;
}

std::optional<std::int64_t> int_at(const json& object, const char* key) {
  const json* member = find(object, key);
  if (member == nullptr || !member->is_number_integer()) {
    return std::nullopt;
  }
  if (member->is_number_unsigned() &&
      member->get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    return std::nullopt;
  }
  return member->get<std::int64_t>();
}

std::vector<std::string> strings_of(const json* array) {
  std::vector<std::string> strings;
  if (array != nullptr && array->is_array()) {
    for (const json& item : *array) {
      if (const auto* text = item.get_ptr<const json::string_t*>()) {
        strings.push_back(*text);
      }
    }
  }
  return strings;
}

std::map<std::string, std::string> string_map_at(const json& object, const char* key) {
  std::map<std::string, std::string> result;
  const json* members = find(object, key);
  if (members == nullptr || !members->is_object()) {
    return result;
  }
  for (const auto& [name, value] : members->items()) {
    if (const auto* text = value.get_ptr<const json::string_t*>()) {
      result.emplace(name, *text);
    } else if (value.is_number()) {
      result.emplace(name, to_text(value));
    }
  }
  return result;
}

}  // namespace slurmlet::kube
