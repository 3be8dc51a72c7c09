#pragma once

// The command line: PROGRAM [COMMAND] [flags], by command_table.h. "--flag value" and
// "--flag=value"; booleans also without a value; the last of repeated flags counts, maps add up.
// The program's name does not matter: started as virtual-kubelet it takes virtual-kubelet's flags.
// Values are not looked at here; load.h does that.

#include <string>
#include <vector>

#include "base/result.h"
#include "config/parsed_command_line.h"

namespace slurmlet::cli {

// `arguments` starts with argv[0]. kInvalid (exit code 2) with one line for each problem.
Result<config::ParsedCommandLine> parse_command_line(const std::vector<std::string>& arguments);

}  // namespace slurmlet::cli
