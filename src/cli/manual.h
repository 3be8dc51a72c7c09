#pragma once

// The manual page slurmlet.yaml(5), made from settings_table.h.

#include <string>

namespace slurmlet::cli {

// packaging/man/slurmlet.yaml.5, in the man macros of man(7). A test keeps it current.
std::string settings_manual();

}  // namespace slurmlet::cli
