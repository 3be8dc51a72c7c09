#include "slurm/sources/rest_refusal.h"

#include "base/text.h"
#include "slurm/sources/rest_versions.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

// libcurl counts bytes and milliseconds in some of its messages.
std::string stable_words(const std::string& reason) {
  if (contains(reason, "transfer closed") || contains(reason, "Empty reply") ||
      contains(reason, "eset by peer")) {
    return "it closed the connection in the middle of its answer";
  }
  if (const auto at = reason.find(" after "); at != std::string::npos) {
    return reason.substr(0, at);
  }
  return reason;
}

std::string cure_of(const RestServer& server, const std::string& reason) {
  if (contains(reason, "wrong version number")) {
    return "; it does not use TLS on this port: put a TLS proxy in front of slurmrestd and set " +
           server.key("RestURL") + " to the proxy";
  }
  return "";
}

}  // namespace

std::string RestServer::key(const std::string& name) const {
  if (of_operator) {
    return "slurm" + name;
  }
  return "slurm." + to_lower(name.substr(0, 1)) + name.substr(1);
}

QueryFailure transport_failure(const RestServer& server, const Error& error) {
  const auto failure = [&](SlurmFailure cause, const std::string& text) {
    return QueryFailure{cause, server.name() + ": " + text};
  };
  const std::string reason = stable_words(error.reason());
  switch (error.code) {
    case Code::kTimeout:
      return deadline_failure(server);
    case Code::kNotFound:
      return failure(SlurmFailure::kRestUnavailable, "the socket does not exist");
    case Code::kDenied:
      return server.is_socket()
                 ? failure(SlurmFailure::kRestUnavailable,
                           reason +
                               " on the socket; allow slurmlet's user to connect to "
                               "it (mode and owner of the socket and its directory)")
                 : failure(SlurmFailure::kRestUnavailable,
                           reason + " (" + server.key("RestCAFile") + " names the CA)");
    case Code::kInvalid:
    case Code::kInternal:
      return failure(SlurmFailure::kRestUnavailable, reason);
    default:
      return failure(SlurmFailure::kRestUnavailable, reason + cure_of(server, reason));
  }
}

QueryFailure refused_failure(const RestServer& server, const std::string& token,
                             const std::string& user) {
  if (!token.empty()) {
    const std::string whom = user.empty() ? "" : " for user " + user;
    return {SlurmFailure::kTokenRefused,
            server.name() + " rejects the token in " + token + whom +
                " (HTTP 401); check that it is for this cluster, " +
                (server.of_operator ? "" : "that slurm.restUser is its user, ") +
                "and that AuthAltTypes=auth/jwt is set"};
  }
  if (server.is_socket()) {
    return {SlurmFailure::kRestUnavailable,
            server.name() +
                " rejects slurmlet (HTTP 401): on its socket it serves only root and its own user, "
                "which must have a passwd entry; run slurmlet as one of them, or set " +
                server.key("JwtFile")};
  }
  return {SlurmFailure::kTokenRefused,
          server.name() + " requires a token (HTTP 401), but none is configured"};
}

QueryFailure no_version_failure(const RestServer& server) {
  return {SlurmFailure::kRestUnavailable,
          server.name() + " serves no API version from " + api_version_name(RestVersions::kOldest) +
              " to " + api_version_name(RestVersions::kNewest) +
              " (HTTP 404); is it slurmrestd, and does it load an openapi plugin?"};
}

QueryFailure deadline_failure(const RestServer& server) {
  return {SlurmFailure::kTimeout,
          server.name() + " did not answer within " + server.key("CommandTimeout")};
}

QueryFailure too_long_failure(const RestServer& server, const std::string& what) {
  return {SlurmFailure::kGarbage, server.name() + " sent more than " + what + " can contain"};
}

QueryFailure no_answer_failure(const RestServer& server) {
  return {SlurmFailure::kRestUnavailable,
          server.name() + ": it closed the connection without an answer"};
}

}  // namespace slurmlet::slurm
