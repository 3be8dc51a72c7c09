#pragma once

// Settings while they are put together: what each source (file, environment, flags) gave, by which
// name a person knows it, and everything that is wrong so far. Later sources overwrite earlier
// ones. Not thread-safe; lives only while the configuration is read.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "config/settings_table.h"
#include "yaml/document.h"

namespace slurmlet::config {

class Draft {
 public:
  Settings settings;

  // Sets the row from a flag or an environment variable. `name` is what the problem's line starts
  // with: "--port", "environment variable KUBELET_PORT". Maps are written "k=v,k=v".
  void set_text(const Row& row, const std::string& name, std::string_view text);
  // The same from a file; "" means "not set", null the default whatever an earlier file says.
  void set_yaml(const Row& row, const yaml::Document& document, const yaml::Value& value);

  void add_problem(std::string line) { problems_.push_back(std::move(line)); }
  // "--port is …": a problem with what this setting is set to.
  void reject(std::string_view key, std::string_view text) {
    add_problem(name_of(key) + " " + std::string{text});
  }
  void add_warning(std::string line) { settings.warnings.push_back(std::move(line)); }
  const std::vector<std::string>& problems() const { return problems_; }

  // Whether a source gave this setting.
  bool is_set(std::string_view key) const { return names_.contains(key); }
  // How the source called it; the key itself when it has its default.
  std::string name_of(std::string_view key) const;
  void set_name(std::string_view key, std::string name) {
    names_.insert_or_assign(std::string{key}, std::move(name));
  }

 private:
  void reset(const Row& row);
  void set_yaml_map(const Row& row, const yaml::Document& document, const yaml::Value& value);

  std::vector<std::string> problems_;
  std::map<std::string, std::string, std::less<>> names_;  // by key
};

}  // namespace slurmlet::config
