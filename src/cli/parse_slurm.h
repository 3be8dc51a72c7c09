#pragma once

// `slurmlet parse-slurm`: what slurmlet would make of an answer of Slurm that somebody captured.
// For bug reports: needs no configuration, no Slurm, no cluster.

#include <string>
#include <string_view>

#include "base/result.h"

namespace slurmlet::cli {

struct ParsedSlurm {
  std::string json;         // one document, two-space indent, "\n" at the end
  bool recognised = false;  // which of Slurm's answers it is, and whether `node` is in it
};

// The document of any bytes; of `node` alone unless that is "". A capture of several nodes without
// `node` gives "nodes", one document for each. Secrets that were captured with it (tokens, the
// headers that carry them) are not repeated. Pure.
ParsedSlurm parse_slurm(std::string_view text, const std::string& node);

// The file, or stdin for "" and "-". kInvalid, with what to do about it, when it cannot be read.
Result<std::string> read_capture(const std::string& file);

}  // namespace slurmlet::cli
