#pragma once

// Output of sinfo under its headings, which name the columns: its tables (sinfo, -N, -l, -N -l, -R)
// and -o or -O with "|" between the fields. A row is a line: what follows in a reason of several
// lines is named and not read (scontrol show node has it). For slurm/answers/capture.h. Pure.
//
// sinfo's words do not tell everything: "drained" is IDLE+DRAIN or DOWN+DRAIN, "inval" hides other
// flags, one sign hides the next (state.h).

#include <optional>
#include <string_view>

#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

// Nothing without headings of sinfo.
std::optional<NodesAnswer> parse_sinfo_table(std::string_view text);

}  // namespace slurmlet::slurm
