#include <nlohmann/json.hpp>

#include "config/load.h"
#include "config/settings_table.h"

namespace slurmlet::config {
namespace {

using Json = nlohmann::ordered_json;

// Numbers, booleans and maps as themselves; durations and choices as people write them.
Json value_json(const Row& row, Settings& settings) {
  return std::visit(
      [&](auto field) -> Json {
        using T = decltype(field(settings));
        if constexpr (std::is_same_v<T, bool&> || std::is_same_v<T, int&> ||
                      std::is_same_v<T, TextMap&>) {
          return Json(field(settings));
        } else if constexpr (std::is_same_v<T, std::optional<int>&>) {
          return field(settings) ? Json(*field(settings)) : Json(row.none);
        } else {
          return value_text(row, settings);
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
