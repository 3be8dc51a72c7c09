#pragma once

// Queries Slurm through slurmrestd or its commands, with a token (JWT) if one is configured.
//
// slurmrestd's CA and the token are reloaded before a query if their files have changed. Reads may
// hang, so they run on another thread (detached_task.h), and the old ones stay in use meanwhile.
// Not thread-safe.

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/command.h"
#include "base/detached_task.h"
#include "base/file.h"
#include "base/result.h"
#include "base/token_file.h"
#include "http/curl_client.h"
#include "operator/options.h"
#include "slurm/answers/privileges.h"
#include "slurm/answers/slurm_client.h"
#include "slurm/sources/rest_calls.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::op {

// Adds the file's token to the command's environment; an Error if there is none.
Status add_token(TokenFile& file, CommandSpec& spec);

// The user of Slurm's commands: that of the token, or else of this process.
slurm::SlurmIdentity slurm_identity(const std::string& token_file, const Clock& clock);

// `token_file` is read for each command, "" = none; `clock` must outlive the runner.
std::unique_ptr<CommandRunner> slurm_runner(const std::string& token_file, const Clock& clock);

class RestAccess {
 public:
  // `clock` must outlive it.
  RestAccess(const Options& options, const Clock& clock);

  // Reloads the CA file. An invalid replacement is logged once, and the old CA stays in use; an
  // Error, which names the file, if there is none.
  Status refresh();
  // Valid after a successful refresh().
  std::shared_ptr<const http::Credentials> credentials() const { return credentials_; }

  slurm::RestToken token();  // empty without slurmJwtFile

 private:
  Status read_ca();

  std::string url_;
  std::string ca_file_;
  std::optional<FileStamp> ca_stamp_;
  DetachedTask<Result<std::optional<StampedFile>>> ca_read_;
  std::shared_ptr<const http::Credentials> credentials_;
  std::string rejected_;  // last logged problem
  std::string token_path_;
  std::optional<TokenFile> token_file_;
};

// The settings for slurmrestd by these options; waits with `first`. Both must outlive it.
slurm::RestSettings rest_connection(const Options& options, http::Client& first,
                                    const Clock& clock);

// The configured source of dumps. All arguments must outlive it.
std::unique_ptr<slurm::DumpSource> dump_source(const Options& options, http::Client& first,
                                               const Clock& clock);
slurm::ClientSettings slurm_client(const Options& options);

}  // namespace slurmlet::op
