#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "config/credentials.h"
#include "config/settings_table.h"

namespace slurmlet::config {
namespace {

void apply_file(const ParsedCommandLine& command, const FileReader& files, Draft& draft) {
  const std::string path = config_file(command);
  const auto content = files(path);
  if (content) {
    draft.settings.config_file = path;
    apply_config_file(*content, path, draft);
  } else if (!command.config_file.empty()) {
    draft.add_problem(fmt::format("--config {}: {}", path, content.error().message));
  } else if (content.error().code != Code::kNotFound) {
    draft.add_problem(fmt::format("{}: {}", path, content.error().message));
  }
}

// In the order of their names, the later ones win; mappings add up.
void apply_drop_ins(const ParsedCommandLine& command, const FileReader& files,
                    const DirectoryReader& directories, Draft& draft) {
  const std::string directory = drop_in_directory(command);
  auto names = directories(directory);
  if (!names) {
    if (names.error().code != Code::kNotFound) {
      draft.add_problem(fmt::format("{}: {}", directory, names.error().message));
    }
    return;
  }
  std::sort(names->begin(), names->end());
  for (const auto& name : *names) {
    const std::string path = directory + "/" + name;
    if (name.ends_with(".yml") && !name.starts_with('.')) {
      draft.add_warning(path + " is not read: files of this directory end in .yaml");
    }
    if (!name.ends_with(".yaml") || name.starts_with('.')) {
      continue;
    }
    if (const auto content = files(path)) {
      draft.settings.drop_ins.push_back(path);
      apply_config_file(*content, path, draft);
    } else {
      draft.add_problem(fmt::format("{}: {}", path, content.error().message));
    }
  }
}

void apply_flags(const ParsedCommandLine& command, Draft& draft) {
  for (const auto& [key, text] : command.values) {
    const Row* row = find_row(key);
    draft.set_text(*row, std::string{row->flag}, text);
  }
}

void apply_provider_file(const ParsedCommandLine& command, const FileReader& files, Draft& draft) {
  if (command.provider_config.empty()) {
    return;
  }
  const auto content = files(command.provider_config);
  if (content) {
    apply_provider_config(*content, command.provider_config, draft);
  } else {
    draft.add_problem(
        fmt::format("--provider-config {}: {}", command.provider_config, content.error().message));
  }
}

using Json = nlohmann::ordered_json;

// Numbers, booleans and maps as themselves; durations and choices as people write them.
Json value_json(const Row& row, Settings& settings) {
  return std::visit(
      [&](auto field) -> Json {
        using T = decltype(field(settings));
        if constexpr (std::is_same_v<T, bool&> || std::is_same_v<T, int&> ||
                      std::is_same_v<T, TextMap&>) {
          return Json(field(settings));
        } else {
          return value_text(row, settings);
        }
      },
      row.field);
}

}  // namespace

std::string config_file(const ParsedCommandLine& command) {
  return command.config_file.empty() ? std::string{kDefaultConfigFile} : command.config_file;
}

std::string drop_in_directory(const ParsedCommandLine& command) {
  std::string path = config_file(command);
  constexpr std::string_view kSuffix = ".yaml";
  if (path.ends_with(kSuffix)) {
    path.resize(path.size() - kSuffix.size());
  }
  return path + ".d";
}

FileReader read_whole_file() {
  return [](const std::string& path) { return read_file(path); };
}

DirectoryReader read_directory() {
  return [](const std::string& path) { return list_directory(path); };
}

Result<Settings> load(const ParsedCommandLine& command, const EnvLookup& environment,
                      const FileReader& files, const DirectoryReader& directories) {
  Draft draft;
  draft.settings.warnings = command.warnings;
  apply_file(command, files, draft);
  apply_drop_ins(command, files, directories, draft);
  apply_environment(environment, files, draft);
  apply_flags(command, draft);
  apply_provider_file(command, files, draft);
  apply_credentials(environment, files, draft);
  apply_in_cluster(environment, draft);
  return finalize(std::move(draft), command.subcommand == "run");
}

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
