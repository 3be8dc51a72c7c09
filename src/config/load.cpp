#include "config/load.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "config/config_file.h"
#include "config/credentials.h"
#include "config/draft.h"
#include "config/provider_config.h"

namespace slurmlet::config {
namespace {

void apply_file(const ParsedCommandLine& command, const FileReader& files, Draft& draft) {
  const std::string path =
      command.config_file.empty() ? std::string{kDefaultConfigFile} : command.config_file;
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

// "/etc/slurmlet/config.yaml" → "/etc/slurmlet/config.d"
std::string drop_in_directory(const ParsedCommandLine& command) {
  std::string path =
      command.config_file.empty() ? std::string{kDefaultConfigFile} : command.config_file;
  constexpr std::string_view kSuffix = ".yaml";
  if (path.ends_with(kSuffix)) {
    path.resize(path.size() - kSuffix.size());
  }
  return path + ".d";
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
    if (!name.ends_with(".yaml") || name.starts_with('.')) {
      continue;
    }
    const std::string path = directory + "/" + name;
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
    const std::string flag{key == row->key ? row->flag : row->old_flag};
    draft.note_key(*row, key, flag);
    draft.set_text(*row, flag, text);
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

}  // namespace

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
  return finalize(std::move(draft), command.subcommand == "run", files);
}

}  // namespace slurmlet::config
