#pragma once

// How this program reaches slurmrestd: where it listens, the CA it is believed by and the token we
// show. The files are looked at before each query and read again when they were replaced, so a
// new CA or token is in use with the next query. They may hang, so that is done aside
// (side_call.h): the old ones stay in use. Belongs to one thread.

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "base/result.h"
#include "base/side_call.h"
#include "base/token_file.h"
#include "config/settings.h"
#include "http/curl_client.h"
#include "slurm/sources/rest_calls.h"

namespace slurmlet::daemon {

class RestAccess {
 public:
  // `url` is one that slurm.restURL may hold. SLURM_JWT is read now. `clock` must outlive it.
  RestAccess(const config::SlurmSettings& settings, std::string url, const Clock& clock);

  // Looks at the CA file. An Error when there is nothing to go on with, naming the file; one that
  // was replaced by a useless one is logged once, and the old one stays in use.
  Status refresh();
  // After a refresh() that was good.
  std::shared_ptr<const http::Credentials> credentials() const { return credentials_; }

  // Over a unix socket only the token of a configured file: slurmrestd knows us by our uid there.
  slurm::RestToken token();

 private:
  Status read_ca();

  std::string url_;
  std::string ca_file_;
  std::optional<FileStamp> ca_stamp_;  // of the one that was read
  SideCall<Result<std::optional<StampedFile>>> ca_look_;
  std::shared_ptr<const http::Credentials> credentials_;
  std::string refused_;  // what was logged
  std::string token_path_;
  std::optional<TokenFile> token_file_;
  std::string token_;  // of the environment
};

// Any local user can take slurmrestd's port while it does not listen. So at a URL of plain http
// only root is trusted and `server_user` or, if that is not known, users with a uid below 1000 and
// our own. kDenied for others, kUnavailable where nobody listens. Always good for https and
// sockets.
Status check_rest_listener(const std::string& url, std::optional<uid_t> server_user,
                           const std::string& proc_root = "/proc");

// What asks there by these settings; waits with `first`. Both must outlive it.
slurm::RestSettings rest_connection(const config::SlurmSettings& settings, const std::string& url,
                                    http::Client& first, const Clock& clock);

}  // namespace slurmlet::daemon
