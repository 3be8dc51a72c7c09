#pragma once

// The packaged texts that are made from settings_table.h; tests keep the files current.

#include <string>

namespace slurmlet::cli {

// packaging/man/slurmlet.yaml.5, in the man macros of man(7).
std::string settings_manual();

// packaging/config.yaml: every key, commented out, with its default.
std::string example_config();

}  // namespace slurmlet::cli
