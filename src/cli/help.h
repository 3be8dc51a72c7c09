#pragma once

// Texts made from settings_table.h: --help, the documentation's table.

#include <string>

namespace slurmlet::cli {

// For `--help`, in the manner of the kubelet's: usage, then flags by section.
// `subcommand` as in ParsedCommandLine.
std::string help_text(const std::string& program, const std::string& subcommand);

// The table of all settings for docs/, in Markdown, one part a section.
std::string settings_table_markdown();

}  // namespace slurmlet::cli
