#pragma once

// An answer of Slurm that somebody captured, recognised by its content: what the daemon's own
// commands print (its sinfo query, scontrol show node and show slurmd), slurmrestd (a body, or with
// the head as `curl -i` prints it), sinfo and scontrol with --json, sinfo under its headings, and
// the error messages of these. For `slurmlet parse-slurm` and tests. Never fails: what it cannot
// read it names. Pure but for the time zone.

#include <optional>
#include <string>
#include <string_view>

#include "slurm/answers/query_result.h"
#include "slurm/answers/slurmd_status.h"

namespace slurmlet::slurm {

// `source` is "sinfo", "sinfo --json", "scontrol show node", "scontrol show node --json",
// "scontrol show slurmd", "slurmrestd", "error message" or "unknown".
struct Capture : NodesAnswer {
  std::optional<SlurmdStatus> slurmd;
  std::string slurmd_failure;  // why `scontrol show slurmd` got no answer; then no other failure
  int http_status = 0;         // 0 without a head
};

Capture parse_capture(std::string_view text);

}  // namespace slurmlet::slurm
