#pragma once

// The configuration file: YAML or JSON, apiVersion slurmlet.io/v1alpha1, kind
// SlurmletConfiguration, keys grouped as in settings_table.h. Unknown keys are rejected.

#include <string>
#include <string_view>

#include "config/draft.h"

namespace slurmlet::config {

// Puts what `text` says into the draft; all problems go there too, each with FILE:LINE:COL.
void apply_config_file(std::string_view text, const std::string& file_name, Draft& draft);

}  // namespace slurmlet::config
