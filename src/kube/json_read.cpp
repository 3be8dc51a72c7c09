#include "kube/json_read.h"

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

const json& member(const json& object, const char* key) {
  static const json kNothing;
  const json* found = find(object, key);
  return found == nullptr ? kNothing : *found;
}

const json& list_at(const json& object, const char* key) {
  static const json kEmpty = json::array();
  const json& list = member(object, key);
  return list.is_array() ? list : kEmpty;
}

std::string string_at(const json& object, const char* key) {
  const auto* text = member(object, key).get_ptr<const json::string_t*>();
  return text == nullptr ? std::string{} : *text;
}

bool bool_at(const json& object, const char* key) {
  const auto* flag = member(object, key).get_ptr<const json::boolean_t*>();
  return flag != nullptr && *flag;
}

std::optional<std::int64_t> int_at(const json& object, const char* key) {
  const json& number = member(object, key);
  const bool fits =
      !number.is_number_unsigned() || std::in_range<std::int64_t>(number.get<std::uint64_t>());
  return number.is_number_integer() && fits ? std::optional{number.get<std::int64_t>()}
                                            : std::nullopt;
}

void put(json& object, const char* key, json value) {
  if (value != "" && !value.empty()) {
    object[key] = std::move(value);
  }
}

std::vector<std::string> strings_of(const json& array) {
  std::vector<std::string> strings;
  if (array.is_array()) {
    for (const json& item : array) {
      if (const auto* text = item.get_ptr<const json::string_t*>()) {
        strings.push_back(*text);
      }
    }
  }
  return strings;
}

std::map<std::string, std::string> string_map_at(const json& object, const char* key) {
  std::map<std::string, std::string> result;
  const json& members = member(object, key);
  if (!members.is_object()) {
    return result;
  }
  for (const auto& [name, value] : members.items()) {
    if (const auto* text = value.get_ptr<const json::string_t*>()) {
      result.emplace(name, *text);
    } else if (value.is_number()) {
      result.emplace(name, to_text(value));
    }
  }
  return result;
}

}  // namespace slurmlet::kube
