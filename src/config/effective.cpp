#include <nlohmann/json.hpp>

#include "config/load.h"
#include "config/settings_table.h"

namespace slurmlet::config {
namespace {

using Json = nlohmann::ordered_json;

struct ToJson {
  Settings& settings;
  Json operator()(std::string& (*field)(Settings&)) const { return field(settings); }
  Json operator()(bool& (*field)(Settings&)) const { return field(settings); }
  Json operator()(int& (*field)(Settings&)) const { return field(settings); }
  Json operator()(TextMap& (*field)(Settings&)) const { return Json(field(settings)); }
};

// Numbers, booleans and maps as themselves; durations and choices as people write them.
Json value_json(const Row& row, Settings& settings) {
  const auto type = type_name(row);
  const bool as_text =
      type == "duration" || std::holds_alternative<node::ReadyFollows& (*)(Settings&)>(row.field);
  if (as_text) {
    return value_text(row, settings);
  }
  return std::visit(
      [&](auto field) -> Json {
        if constexpr (std::is_invocable_v<ToJson, decltype(field)>) {
          return ToJson{settings}(field);
        } else {
          return nullptr;
        }
      },
      row.field);
}

}  // namespace

std::string effective_settings_json(const Settings& settings) {
  Settings readable = settings;
  Json json = Json::object();
  json["configFile"] = settings.config_file;
  if (!settings.drop_ins.empty()) {
    json["dropIns"] = settings.drop_ins;
  }
  for (const auto& row : settings_table()) {
    const std::string key{row.key};
    const auto dot = key.find('.');
    Json value = value_json(row, readable);
    if (dot == std::string::npos) {
      json[key] = std::move(value);
    } else {
      json[key.substr(0, dot)][key.substr(dot + 1)] = std::move(value);
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace slurmlet::config
