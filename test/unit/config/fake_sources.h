#pragma once

// Files and environment variables as maps, for tests of config/.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/detached_task.h"
#include "cli/commands.h"
#include "config/load.h"

namespace slurmlet::config {

struct FakeSources {
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> unreadable;  // path → message
  std::map<std::string, std::string> environment;

  // May be used aside, for longer than this object lives.
  FileReader reader() const {
    return [own = *this](const std::string& path) -> Result<std::string> {
      touches_file(path);
      if (const auto found = own.unreadable.find(path); found != own.unreadable.end()) {
        return Error{Code::kDenied, found->second};
      }
      const auto found = own.files.find(path);
      if (found == own.files.end()) {
        return Error{Code::kNotFound, "open " + path + ": No such file or directory"};
      }
      return found->second;
    };
  }

  // The names of `files` below a directory.
  DirectoryReader directories() const {
    return [this](const std::string& path) -> Result<std::vector<std::string>> {
      std::vector<std::string> names;
      for (const auto& [file, content] : files) {
        if (file.starts_with(path + "/")) {
          names.insert(names.begin(), file.substr(path.size() + 1));  // not sorted
        }
      }
      return names.empty() ? Result<std::vector<std::string>>{Error{Code::kNotFound, "none"}}
                           : names;
    };
  }

  EnvLookup lookup() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      return found == environment.end() ? std::nullopt : std::optional{found->second};
    };
  }

  Result<Settings> load_with(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "slurmlet");
    const auto command = cli::parse_command_line(arguments);
    if (!command) {
      return command.error();
    }
    return command->help ? Result<Settings>{Settings{}}
                         : load(*command, lookup(), reader(), directories());
  }
  // "" when loading works.
  std::string error_with(const std::vector<std::string>& arguments) const {
    const auto settings = load_with(arguments);
    return settings ? "" : settings.error().message;
  }
};

inline Settings loaded(const FakeSources& sources, const std::vector<std::string>& arguments) {
  auto settings = sources.load_with(arguments);
  EXPECT_TRUE(settings) << settings.error().message;
  return settings ? *settings : Settings{};
}

}  // namespace slurmlet::config
