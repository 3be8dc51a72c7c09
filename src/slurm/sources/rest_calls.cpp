#include "slurm/sources/rest_calls.h"

#include <utility>

#include "base/text.h"
#include "slurm/answers/node_json.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

constexpr int kUnauthorized = 401;
constexpr int kNotFound = 404;

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

std::string fix_of(const std::string& reason) {
  if (contains(reason, "wrong version number")) {
    return "; it does not use TLS on this port: put a TLS proxy in front of slurmrestd and set "
           "slurmRestURL to the proxy";
  }
  return "";
}

QueryFailure deadline_failure(const RestSettings& server) {
  return {SlurmFailure::kTimeout, server.name() + " did not answer within slurmCommandTimeout"};
}

// The transport failed.
QueryFailure transport_failure(const RestSettings& server, const Error& error) {
  const auto failure = [&](const std::string& text) {
    return QueryFailure{SlurmFailure::kRestUnavailable, server.name() + ": " + text};
  };
  const std::string reason = stable_words(error.reason());
  switch (error.code) {
    case Code::kTimeout:
      return deadline_failure(server);
    case Code::kNotFound:
      return failure("the socket does not exist");
    case Code::kDenied:
      return server.is_socket() ? failure(reason +
                                          " on the socket; allow slurmlet's user to connect to "
                                          "it (mode and owner of the socket and its directory)")
                                : failure(reason + " (slurmRestCAFile names the CA)");
    case Code::kInvalid:
    case Code::kInternal:
      return failure(reason);
    default:
      return failure(reason + fix_of(reason));
  }
}

// HTTP 401: slurmrestd itself does not take us. `token` says where the token is that was sent, ""
// if none was.
QueryFailure rejected_failure(const RestSettings& server, const std::string& token,
                              const std::string& user) {
  if (!token.empty()) {
    const std::string whom = user.empty() ? "" : " for user " + user;
    return {SlurmFailure::kTokenRefused,
            server.name() + " rejects the token in " + token + whom +
                " (HTTP 401); check that it is for this cluster, and that AuthAltTypes=auth/jwt is "
                "set"};
  }
  if (server.is_socket()) {
    return {SlurmFailure::kRestUnavailable,
            server.name() +
                " rejects slurmlet (HTTP 401): on its socket it serves only root and its own user, "
                "which must have a passwd entry; run slurmlet as one of them, or set " +
                "slurmJwtFile"};
  }
  return {SlurmFailure::kTokenRefused,
          server.name() + " requires a token (HTTP 401), but none is configured"};
}

// HTTP 404 for all of its versions.
QueryFailure no_version_failure(const RestSettings& server) {
  return {SlurmFailure::kRestUnavailable,
          server.name() + " serves no API version from " + api_version_name(RestVersions::kOldest) +
              " to " + api_version_name(RestVersions::kNewest) +
              " (HTTP 404); is it slurmrestd, and does it load an openapi plugin?"};
}

}  // namespace

std::optional<QueryFailure> RestCalls::begin(Now now) {
  if (!client_) {
    auto made = settings_.make_client();
    if (!made) {
      return QueryFailure{made.error().code == Code::kTimeout ? SlurmFailure::kFileSystemHangs
                                                              : SlurmFailure::kRestUnavailable,
                          settings_.name() + ": " + made.error().message};
    }
    client_ = *std::move(made);
  }
  token_ = settings_.read_token();
  token_.text = std::string{bare_token(token_.text)};
  user_ = user();
  deadline_ = now.steady + settings_.timeout;
  version_ = versions_.candidate();
  before_.reset();
  if (auto problem = token_problem(token_, now.wall)) {
    return problem;
  }
  return std::nullopt;
}

std::string RestCalls::user() const {
  if (token_.text.empty()) {
    return "";
  }
  const auto claims = token_claims(token_.text);
  return claims && !claims->user.empty() ? claims->user : settings_.own_user();
}

void RestCalls::get(const std::string& path, SteadyTime now, std::size_t notify_at) {
  stream_.reset();  // before the next, so that its connection can be used again
  http::Request request;
  request.path = path;
  request.timeout = deadline_ - now;
  request.notify_at = notify_at;
  if (!user_.empty()) {
    request.headers.emplace_back("X-SLURM-USER-NAME", user_);
  }
  if (!token_.text.empty()) {
    request.headers.emplace_back("X-SLURM-USER-TOKEN", token_.text);
  }
  stream_ = client_->open_stream(request);
}

std::optional<RestCalls::End> RestCalls::poll(SteadyTime now, const Take& take) {
  if (!stream_) {
    return std::nullopt;
  }
  const bool ended = stream_->ended();
  if (auto failure = take(stream_->status(), stream_->take())) {
    return End{0, std::move(failure)};
  }
  if (!ended && now < deadline_) {
    return std::nullopt;
  }
  return ended ? judge() : End{0, deadline_failure(settings_)};
}

RestCalls::End RestCalls::judge() {
  if (const auto error = stream_->error()) {
    if (error->code != Code::kTimeout) {
      versions_.unreachable();
    }
    return {0, transport_failure(settings_, *error)};
  }
  const int status = stream_->status();
  switch (status) {
    case 0:
      versions_.unreachable();
      // The server ended the answer before its head.
      return {0, QueryFailure{SlurmFailure::kRestUnavailable,
                              settings_.name() + ": it closed the connection without an answer"}};
    case kUnauthorized:
      return {status, rejected_failure(settings_, token_.text.empty() ? "" : token_.where, user_)};
    default:
      return {status, std::nullopt};
  }
}

bool RestCalls::is_served(int status, const std::string& body) {
  return status != kNotFound || !parse_nodes_json(body, kNotFound).api_version.empty();
}

std::optional<QueryFailure> RestCalls::not_served() {
  if (before_) {  // nothing below kNeedsDatabase
    return before_;
  }
  if (!versions_.not_served()) {
    return no_version_failure(settings_);
  }
  version_ = versions_.candidate();
  return std::nullopt;
}

// slurmctld may be down, or only slurmdbd missing: the version below shows which.
bool RestCalls::may_be_the_version(int status, const QueryFailure& failure) {
  if (version_ != RestVersions::kNeedsDatabase || status < 500) {
    return false;
  }
  before_ = failure;
  --version_;
  return true;
}

QueryFailure RestCalls::to_report(QueryFailure failure) const {
  return before_ && before_->cause == SlurmFailure::kControllerUnreachable ? *before_
                                                                           : std::move(failure);
}

QueryFailure RestCalls::too_long(const std::string& what) const {
  return {SlurmFailure::kInvalidResponse,
          settings_.name() + " sent more than " + what + " can contain"};
}

void RestCalls::end() {
  stream_.reset();
  token_ = {};
}

}  // namespace slurmlet::slurm
