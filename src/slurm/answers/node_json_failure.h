#pragma once

// The failing forms of slurmrestd's answers about nodes, and of the proxies in front of it.
// Internal to node_json. Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/answers/query_result.h"

namespace slurmlet::slurm {

// One of errors[] of an answer: {error, errno} before v0.0.39, else {description, error_number,
// error, source}.
struct SlurmError {
  std::optional<std::int64_t> number;
  std::string text;         // "Protocol authentication error"
  std::string description;  // "Failure to query node gpu02"; "" before v0.0.39
};

std::vector<SlurmError> slurm_errors(const nlohmann::json& document);

// What several errors of one answer mean together: the first that is known, else the first. Not
// for an empty list.
QueryFailure classify_errors(const std::vector<SlurmError>& errors);

// An answer that is none of Slurm's documents with errors. `status` 0 is the output of a command.
QueryFailure classify_body(int status, std::string_view body);

}  // namespace slurmlet::slurm
