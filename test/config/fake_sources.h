#pragma once

// Files and environment variables as maps, for tests of config/.

#include <map>
#include <string>
#include <vector>

#include "config/load.h"

namespace slurmlet::config {

struct FakeSources {
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> unreadable;  // path → message
  std::map<std::string, std::string> environment;

  FileReader reader() const {
    return [this](const std::string& path) -> Result<std::string> {
      if (const auto found = unreadable.find(path); found != unreadable.end()) {
        return Error{Code::kDenied, found->second};
      }
      const auto found = files.find(path);
      if (found == files.end()) {
        return Error{Code::kNotFound, "open " + path + ": No such file or directory"};
      }
      return found->second;
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
    return load(arguments, lookup(), reader());
  }
  // "" when loading works.
  std::string error_with(const std::vector<std::string>& arguments) const {
    const auto settings = load_with(arguments);
    return settings ? "" : settings.error().message;
  }
};

}  // namespace slurmlet::config
