#pragma once

// Texts made from settings_table.h: --help, the documentation's table, the example file.

#include <string>

namespace slurmlet::cli {

// For `--help`, in the manner of the kubelet's: usage, then flags by section.
// `subcommand` as in ParsedCommandLine.
std::string help_text(const std::string& program, const std::string& subcommand);

// The table of all settings for docs/, in Markdown, one part a section.
std::string settings_table_markdown();

// packaging/config.yaml: every key, commented out, with its default. A test keeps it current.
std::string example_config();

}  // namespace slurmlet::cli
