#pragma once

// The rules of single values (Rule in settings_table.h). Each answers what is wrong as the end of a
// sentence that starts with the setting's name: `is "500ms"; it must be at least 1s`. Pure
// functions.

#include <optional>
#include <string>
#include <string_view>

#include "config/settings_table.h"

namespace slurmlet::config {

using Problem = std::optional<std::string>;

// Applies row.rule to a text that is not empty.
Problem text_problem(const Row& row, std::string_view text);
// Applies row.rule to one entry of a map.
Problem entry_problem(const Row& row, const std::string& key, const std::string& value);
// Limits of whole numbers and durations (in ms).
Problem range_problem(const Row& row, std::int64_t value);

// Why a node must not be given this label, for all sources of labels.
Problem label_problem(const std::string& key, const std::string& value);
// cloud-init leaves "CI_MISSING_JINJA_VAR/name" where a template variable had no value.
Problem template_problem(std::string_view text);

}  // namespace slurmlet::config
