// Rows of the settings table as text: their types, values and defaults; flags that are no settings.

#include <algorithm>
#include <set>

#include "base/text.h"
#include "config/duration.h"
#include "config/settings_table.h"

namespace slurmlet::config {
namespace {

std::string as_text(const std::string& value) { return value; }
std::string as_text(bool value) { return value ? "true" : "false"; }
std::string as_text(int value) { return std::to_string(value); }
std::string as_text(Milliseconds value) { return format_duration(value); }
std::string as_text(const TextMap& value) {
  std::vector<std::string> parts;
  for (const auto& [key, text] : value) {
    parts.push_back(key + "=" + text);
  }
  return join(parts, ",");
}

std::string value_of(const Row&, const auto& value) { return as_text(value); }
template <typename T>
std::string value_of(const Row& row, const std::optional<T>& value) {
  return value ? as_text(*value) : std::string{row.none};
}
template <typename E>
  requires std::is_enum_v<E>
std::string value_of(const Row& row, const E& value) {
  const auto word = std::find_if(row.words.begin(), row.words.end(), [&](const Word& one) {
    return one.value == static_cast<int>(value);
  });
  return std::string{word->text};
}

}  // namespace

bool is_bool(const Row& row) { return std::holds_alternative<bool& (*)(Settings&)>(row.field); }
std::vector<std::string> choices(const Row& row) {
  std::vector<std::string> out;
  std::set<int> seen;
  for (const Word& word : row.words) {
    if (seen.insert(word.value).second) {
      out.emplace_back(word.text);
    }
  }
  return out;
}
bool is_map(const Row& row) { return std::holds_alternative<TextMap& (*)(Settings&)>(row.field); }

bool is_int(const Row& row) { return std::holds_alternative<int& (*)(Settings&)>(row.field); }

bool is_duration(const Row& row) {
  return std::holds_alternative<Milliseconds& (*)(Settings&)>(row.field) ||
         std::holds_alternative<std::optional<Milliseconds>& (*)(Settings&)>(row.field);
}

bool is_text(const Row& row) {
  return !is_bool(row) && !is_map(row) && !is_int(row) && !is_duration(row);
}

std::string_view type_name(const Row& row) {
  return is_bool(row)       ? ""
         : is_map(row)      ? "mapping"
         : is_int(row)      ? "int"
         : is_duration(row) ? "duration"
                            : "string";
}

std::string_view section_of(const Row& row) {
  constexpr std::pair<std::string_view, std::string_view> kSections[] = {
      {"kubernetes", "Kubernetes API"},
      {"node", "Node"},
      {"slurm", "Slurm"},
      {"metal3", "Metal3"},
      {"pods", "Pods"},
      {"endpoint", "Endpoints"}};
  const auto group = row.key.substr(0, row.key.find('.'));
  for (const auto& [name, section] : kSections) {
    if (name == group) {
      return section;
    }
  }
  return "General";
}

std::string value_text(const Row& row, const Settings& settings) {
  Settings copy = settings;  // the accessors give mutable references
  return std::visit([&](auto field) { return value_of(row, field(copy)); }, row.field);
}

std::string default_text(const Row& row) { return value_text(row, Settings{}); }

const std::vector<CommandFlag>& command_flags() {
  static const std::vector<CommandFlag> kFlags = {
      {.name = "--config",
       .type = "string",
       .default_text = kDefaultConfigFile,
       .help = "configuration file; the default one may be absent"},
      {.name = "--provider",
       .type = "string",
       .help =
           "accepted for compatibility with virtual-kubelet; mock and slurm mean the same here"},
      {.name = "--provider-config",
       .type = "string",
       .help = "JSON file of virtual-kubelet's mock provider: labels and providerID for this node "
               "are used"},
      {.name = "--help", .short_name = "-h", .help = "show this help"},
      {.name = "--version", .help = "show the version"},
  };
  return kFlags;
}

}  // namespace slurmlet::config
