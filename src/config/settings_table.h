#pragma once

// One row per setting: its key in the file, flag, environment variable, field, limits and help.
// Flags, file validation, suggestions, --help, the documentation's table, packaging/config.yaml and
// the start-up log are all made from these rows. Immutable; safe from any thread.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "config/settings.h"

namespace slurmlet::config {

using TextMap = std::map<std::string, std::string>;

// One word of a choice and the value of the enum that it stands for. The first word of a value is
// the one that is shown.
struct Word {
  template <typename E>
    requires std::is_enum_v<E>
  constexpr Word(std::string_view word, E meaning) : text(word), value(static_cast<int>(meaning)) {}
  std::string_view text;
  int value;
};

// Where a row's value lives. The type of the setting is the type of its field.
using Field = std::variant<std::string& (*)(Settings&), bool& (*)(Settings&), int& (*)(Settings&),
                           Milliseconds& (*)(Settings&),
                           std::optional<Milliseconds>& (*)(Settings&), TextMap& (*)(Settings&),
                           log::Level& (*)(Settings&), node::ReadyFollows& (*)(Settings&),
                           Recreate& (*)(Settings&), node::SlurmSource& (*)(Settings&)>;

// What is wrong with a value; nothing if it is right.
using Problem = std::optional<std::string>;

struct Row {
  std::string_view key;               // "slurm.pollInterval"
  std::string_view flag;              // "--slurm-poll-interval"
  std::string_view environment = "";  // "" = none
  Field field;
  std::string_view help;             // one sentence, lower-case start, no full stop
  std::string_view when_unset = "";  // what happens without a value, where the default is ""
  std::string_view none = "";        // the word for no value of an optional one: "never", "auto"
  // An empty text is an error, not "not set": unset, more is trusted than the author meant.
  bool decides_trust = false;
  // Beyond the type, by rules.h. "" is "not set".
  Problem (*rule)(std::string_view text) = nullptr;
  Problem (*entry_rule)(const std::string& key, const std::string& value) = nullptr;  // of a map
  std::int64_t minimum = 0;  // whole numbers; durations in ms
  std::int64_t maximum = std::numeric_limits<int>::max();
  std::span<const Word> words = {};  // of a choice
};

std::span<const Row> settings_table();
const Row* find_row(std::string_view key);
std::string_view section_of(const Row& row);  // "Kubernetes API"

// "string", "int", "duration", "mapping"; "" for true/false.
std::string_view type_name(const Row& row);
bool is_bool(const Row& row);
bool is_text(const Row& row);
bool is_int(const Row& row);
bool is_duration(const Row& row);
bool is_map(const Row& row);
// The words of a choice that are shown; none for other types.
std::vector<std::string> choices(const Row& row);

// The value of a row as text: "1m", "true", "a=b,c=d", "slurmd".
std::string value_text(const Row& row, const Settings& settings);
// The same of a Settings nobody touched.
std::string default_text(const Row& row);

// A flag that is no setting.
struct CommandFlag {
  std::string_view name;             // "--output"
  std::string_view short_name = "";  // "-o"; "" = none
  std::string_view type = "";        // for the help: "string"; "" = a switch, "true" when given
  std::string_view default_text = "";
  std::string_view help = "";
  std::vector<std::string_view> choices = {};  // empty = any value

  bool is_switch() const { return type.empty(); }
  // Its key in ParsedCommandLine::options: "output".
  std::string_view key() const { return name.substr(2); }
};
// Those of all commands: --config, --provider, --provider-config, --help, --version.
const std::vector<CommandFlag>& command_flags();

inline constexpr std::string_view kDefaultConfigFile = "/etc/slurmlet/config.yaml";
inline constexpr std::string_view kApiVersion = "slurmlet.io/v1alpha1";
inline constexpr std::string_view kKind = "SlurmletConfiguration";

}  // namespace slurmlet::config
