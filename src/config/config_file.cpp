#include "config/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/removed_settings.h"
#include "config/settings_table.h"

namespace slurmlet::config {
namespace {

// Every key a file may have: settings, the groups they are in, apiVersion and kind.
std::vector<std::string> known_keys() {
  std::vector<std::string> keys = {"apiVersion", "kind"};
  for (const auto& row : settings_table()) {
    keys.emplace_back(row.key);
    const auto dot = row.key.find('.');
    if (dot != std::string_view::npos) {
      keys.emplace_back(row.key.substr(0, dot));
    }
  }
  return keys;
}

bool is_group(std::string_view key) {
  const auto& rows = settings_table();
  return std::any_of(rows.begin(), rows.end(), [key](const Row& row) {
    return row.key.size() > key.size() && row.key.starts_with(key) && row.key[key.size()] == '.';
  });
}

class FileReading {
 public:
  FileReading(const yaml::Document& document, Draft& draft) : document_(document), draft_(draft) {}

  void read() {
    const yaml::Value& root = document_.root();
    if (!root.is_map()) {
      problem(
          document_.where(root),
          fmt::format("the file is {}; it must be a map that starts with \"apiVersion: {}\" and "
                      "\"kind: {}\"",
                      root.is_null() ? "empty" : to_string(root.kind()), kApiVersion, kKind));
      return;
    }
    check_type(root, "apiVersion", kApiVersion);
    check_type(root, "kind", kKind);
    read_group(root, "");
  }

 private:
  void problem(const std::string& where, const std::string& text) {
    draft_.add_problem(fmt::format("{}: {}", where, text));
  }

  void check_type(const yaml::Value& root, std::string_view key, std::string_view wanted) {
    const yaml::Value* value = root.find(key);
    if (value == nullptr) {
      problem(document_.where(root), fmt::format("\"{}: {}\" is missing", key, wanted));
    } else if (value->text() != wanted) {
      problem(document_.where(*value), fmt::format("{} is \"{}\"; this version knows only \"{}\"",
                                                   key, value->text(), wanted));
    }
  }

  void read_group(const yaml::Value& group, const std::string& prefix) {
    for (const auto& [name, value] : group.entries()) {
      const std::string key = prefix + name;
      if (prefix.empty() && (name == "apiVersion" || name == "kind")) {
        continue;
      }
      const Row* row = find_row(key);
      if (row != nullptr) {
        draft_.set_yaml(*row, document_, value);
      } else if (!is_group(key)) {
        unknown_key(key, value);
      } else if (value.is_map()) {
        read_group(value, key + ".");
      } else if (!value.is_null()) {
        // An empty group is what remains when all its keys are commented out.
        problem(document_.where(value),
                fmt::format("{} is {}; it must be a map", key, to_string(value.kind())));
      }
    }
  }

  void unknown_key(const std::string& key, const yaml::Value& value) {
    const std::string where = document_.where_key(value);
    if (const auto removal = removal_of(key); !removal.empty()) {
      problem(where, fmt::format("{} {}", key, removal));
      return;
    }
    const auto near = nearest(key, known_keys());
    problem(where, fmt::format("unknown key \"{}\"{}", key,
                               near ? fmt::format("; did you mean \"{}\"?", *near) : ""));
  }

  const yaml::Document& document_;
  Draft& draft_;
};

}  // namespace

void apply_config_file(std::string_view text, const std::string& file_name, Draft& draft) {
  const auto document = yaml::parse(text, file_name);
  if (!document) {
    draft.add_problem(document.error().message);
    return;
  }
  FileReading{*document, draft}.read();
}

}  // namespace slurmlet::config
