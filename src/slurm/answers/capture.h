#pragma once

// Any answer of Slurm that somebody captured, recognised by its content: sinfo (our own query,
// "-o" and "-O" with "|" between the fields, its tables, single state words), scontrol show node
// (text, -d, -o, --json), slurmrestd (a body, or with the head as `curl -i` prints it), scontrol
// show slurmd, and the error messages of all of them. For `slurmlet parse-slurm` and tests. Never
// fails: what it cannot read it names. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/facts.h"
#include "slurm/answers/query_result.h"
#include "slurm/answers/slurmd_status.h"

namespace slurmlet::slurm {

struct Capture {
  // "sinfo", "sinfo --json", "scontrol show node", "scontrol show node --json",
  // "scontrol show slurmd", "scontrol ping", "slurmrestd", "error message", "unknown"
  std::string source;
  std::vector<node::SlurmNodeRecord> nodes;
  std::optional<QueryFailure> failure;
  std::optional<SlurmdStatus> slurmd;
  std::string api_version;    // "v0.0.44"; "" if not told
  std::string slurm_version;  // of what answered; "" if not told
  std::string cluster;
  int http_status = 0;  // 0 without a head
  std::vector<std::string> not_understood;
};

Capture parse_capture(std::string_view text);

}  // namespace slurmlet::slurm
