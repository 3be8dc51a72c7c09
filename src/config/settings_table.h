#pragma once

// One row per setting: its key in the file, flag, environment variable, field, limits and help.
// Flags, file validation, suggestions, --help, the documentation's table, packaging/config.yaml and
// the start-up log are all made from these rows. Immutable; safe from any thread.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config/settings.h"

namespace slurmlet::config {

using TextMap = std::map<std::string, std::string>;

// Where a row's value lives. The type of the setting is the type of its field.
using Field = std::variant<std::string& (*)(Settings&), bool& (*)(Settings&), int& (*)(Settings&),
                           Seconds& (*)(Settings&), std::optional<Seconds>& (*)(Settings&),
                           TextMap& (*)(Settings&), node::ReadyFollows& (*)(Settings&)>;

// Rules for texts and maps beyond their type (value.h applies them). "" is always "not set".
enum class Rule {
  kNone,
  kAbsolutePath,
  kChoice,     // one of Row::choices
  kServer,     // https://HOST[:PORT]
  kNodeName,   // RFC 1123 subdomain
  kSlurmName,  // one Slurm NodeName, no hostlist expression
  kIp,
  kNodeIps,  // one, or one of each family
  kTaints,   // KEY[=VALUE]:EFFECT,…
  kProviderId,
  kLabelValue,
  kLabels,       // map: label rules of Kubernetes, NodeRestriction, not slurmlet's own
  kPem,          // PEM text with a certificate
  kRestUrl,      // unix:/PATH, https://HOST[:PORT], http://LOOPBACK:PORT
  kSlurmLabels,  // "none", or some of kSlurmLabelKinds with commas between
  kCpuAffinity,  // "none", "slurmd" or a list of CPUs
  kKeyHashes,    // sha256:<64 hex digits>, several with commas between
  kGpuResources  // map: Gres name or name:type → extended resource name
};

struct Row {
  std::string_view section;
  std::string_view key;          // "slurm.pollInterval"
  std::string_view flag;         // "--slurm-poll-interval"
  std::string_view environment;  // "" = none
  Field field;
  std::string_view help;        // one sentence, lower-case start, no full stop
  std::string_view when_unset;  // what happens without a value, for settings whose default is ""
  Rule rule = Rule::kNone;
  std::int64_t minimum = 0;  // whole numbers; durations in ms
  std::int64_t maximum = std::numeric_limits<int>::max();
  std::vector<std::string_view> choices = {};
  // Other words accepted for a choice (virtual-kubelet's log levels).
  std::vector<std::pair<std::string_view, std::string_view>> aliases = {};
};

const std::vector<Row>& settings_table();
const Row* find_row(std::string_view key);

// "string", "int", "duration", "mapping"; "" for true/false.
std::string_view type_name(const Row& row);
bool is_bool(const Row& row);
bool is_map(const Row& row);

// The value of a row as text: "1m", "true", "a=b,c=d", "slurmd".
std::string value_text(const Row& row, const Settings& settings);
// The same of a Settings nobody touched.
std::string default_text(const Row& row);

// Flags that are no settings: --config, --provider, --provider-config, --help, --version.
struct CommandFlag {
  std::string_view flag;
  std::string_view type;
  std::string_view default_text;
  std::string_view help;
};
const std::vector<CommandFlag>& command_flags();

inline constexpr std::string_view kDefaultConfigFile = "/etc/slurmlet/config.yaml";
inline constexpr std::string_view kApiVersion = "slurmlet.io/v1alpha1";
inline constexpr std::string_view kKind = "SlurmletConfiguration";

}  // namespace slurmlet::config
