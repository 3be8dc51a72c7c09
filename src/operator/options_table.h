#pragma once

// The table of the operator's settings: one row is a flag, a key of the configuration file, their
// help and what they set. Internal to options.cpp.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "operator/options.h"

namespace slurmlet::op {

// What is wrong, as the end of a sentence that starts with the setting's name (config/rules.h);
// nothing when all is well.
using OptionProblem = std::optional<std::string>;

struct OptionRow {
  std::string_view key, flag;
  std::string_view type;  // for the help; "" = true or false
  std::string_view help;
  OptionProblem (*set)(Options&, const std::string&);
  std::string (*show)(const Options&);
};

std::span<const OptionRow> option_rows();

}  // namespace slurmlet::op
