#pragma once

// How Slurm is asked: by slurmrestd, or by its commands; with a token (JWT) of Slurm in their
// environment where one is configured.
//
// slurmrestd's CA and the token are looked at before each query and read again when they were
// replaced, so a new one is in use with the next query. Their files may hang, so that is done aside
// (side_call.h): the old ones stay in use. Belongs to one thread.

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/command.h"
#include "base/file.h"
#include "base/result.h"
#include "base/side_call.h"
#include "base/token_file.h"
#include "http/curl_client.h"
#include "operator/options.h"
#include "slurm/answers/privileges.h"
#include "slurm/answers/slurm_client.h"
#include "slurm/sources/rest_calls.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::op {

// Gives the command the token of a file. An Error where there is none.
Status add_token(TokenFile& file, CommandSpec& spec);

// Who Slurm's commands act as: the user of the token, or this process's.
slurm::SlurmIdentity slurm_identity(const std::string& token_file, const Clock& clock);

// `token_file` is looked at for each command, "" = none; `clock` must outlive the runner.
std::unique_ptr<CommandRunner> slurm_runner(const std::string& token_file, const Clock& clock);

class RestAccess {
 public:
  // `clock` must outlive it.
  RestAccess(const Options& options, const Clock& clock);

  // Looks at the CA file. An Error when there is nothing to go on with, naming the file; one that
  // was replaced by a useless one is logged once, and the old one stays in use.
  Status refresh();
  // After a refresh() that was good.
  std::shared_ptr<const http::Credentials> credentials() const { return credentials_; }

  slurm::RestToken token();  // empty without a file of one

 private:
  Status read_ca();

  std::string url_;
  std::string ca_file_;
  std::optional<FileStamp> ca_stamp_;  // of the one that was read
  SideCall<Result<std::optional<StampedFile>>> ca_look_;
  std::shared_ptr<const http::Credentials> credentials_;
  std::string rejected_;  // what was logged
  std::string token_path_;
  std::optional<TokenFile> token_file_;
};

// What asks there by these options; waits with `first`. Both must outlive it.
slurm::RestSettings rest_connection(const Options& options, http::Client& first,
                                    const Clock& clock);

// The dump of all nodes, as configured. All must outlive it.
std::unique_ptr<slurm::DumpSource> dump_source(const Options& options, http::Client& first,
                                               const Clock& clock);
slurm::ClientSettings slurm_client(const Options& options);

}  // namespace slurmlet::op
