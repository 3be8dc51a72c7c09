#pragma once

// How Slurm is asked: by slurmrestd, or by its commands; with a token (JWT) of Slurm in their
// environment where one is configured.

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/command.h"
#include "base/token_file.h"
#include "http/client.h"
#include "operator/options.h"
#include "slurm/answers/privileges.h"
#include "slurm/answers/sinfo.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::op {

// Gives the command the token of a file. An Error where there is none.
Status add_token(TokenFile& file, CommandSpec& spec);

// Who Slurm's commands act as: the user of the token, or this process's.
slurm::SlurmIdentity slurm_identity(const std::string& token_file, const Clock& clock);

// `token_file` is looked at for each command, "" = none; `clock` must outlive the runner.
std::unique_ptr<CommandRunner> slurm_runner(const std::string& token_file, const Clock& clock);

// The dump of all nodes, as configured. All must outlive it.
std::unique_ptr<slurm::DumpSource> dump_source(const Options& options, http::Client& first,
                                               const Clock& clock);
slurm::SinfoSettings slurm_client(const Options& options);

}  // namespace slurmlet::op
