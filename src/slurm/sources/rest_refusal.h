#pragma once

// Why slurmrestd gave no answer, for people, in words that stay the same while the cause does. The
// cure that every failure of its kind has is told where it is shown (node/slurm_view.cpp), others
// here. Pure.

#include <string>

#include "base/result.h"
#include "slurm/sources/node_source.h"

namespace slurmlet::slurm {

struct RestServer {
  std::string url;  // "unix:/run/slurmrestd.socket", "https://head:6820"
  // Whose settings a cure names: those of slurmlet-operator ("slurmRestURL"), or of slurmlet.
  bool of_operator = false;
  std::string key(const std::string& name) const;  // "slurm.restURL" of "RestURL"
  bool is_socket() const { return url.starts_with("unix:"); }
  // "slurmrestd unix:/run/slurmrestd.socket"
  std::string name() const { return "slurmrestd " + url; }
};

// The transport failed.
QueryFailure transport_failure(const RestServer& server, const Error& error);

// HTTP 401: slurmrestd itself does not take us. `token` says where the token is that was sent, ""
// if none was.
QueryFailure refused_failure(const RestServer& server, const std::string& token,
                             const std::string& user);

// HTTP 404 for all of its versions.
QueryFailure no_version_failure(const RestServer& server);

QueryFailure deadline_failure(const RestServer& server);

// `what` it can only have: "the record of one node".
QueryFailure too_long_failure(const RestServer& server, const std::string& what);

// The server ended the answer before its head.
QueryFailure no_answer_failure(const RestServer& server);

}  // namespace slurmlet::slurm
