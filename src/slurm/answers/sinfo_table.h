#pragma once

// Output of sinfo under its headings, which name the columns: its tables (sinfo, -N, -l, -N -l, -R)
// and -o or -O with "|" between the fields. A row is a line: what follows in a reason of several
// lines is named and not read (scontrol show node has it). For slurm/answers/capture.h. Pure.
//
// sinfo's words do not tell everything: "drained" is IDLE+DRAIN or DOWN+DRAIN, "inval" hides other
// flags, one sign hides the next (state.h).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/facts.h"

namespace slurmlet::slurm {

struct SinfoTable {
  std::vector<node::SlurmNodeRecord> nodes;  // without a name where there is no column of names
  std::vector<std::string> not_understood;
};

// Nothing without headings of sinfo.
std::optional<SinfoTable> parse_sinfo_table(std::string_view text);

}  // namespace slurmlet::slurm
