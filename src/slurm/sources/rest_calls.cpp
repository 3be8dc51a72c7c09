#include "slurm/sources/rest_calls.h"

#include <fmt/format.h>

#include <utility>

#include "slurm/answers/node_json.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

constexpr int kUnauthorized = 401;
constexpr int kNotFound = 404;

}  // namespace

std::optional<QueryFailure> RestCalls::begin(Now now) {
  if (!client_) {
    auto made = make_client_();
    if (!made) {
      return QueryFailure{made.error().code == Code::kTimeout ? SlurmFailure::kFileSystemHangs
                                                              : SlurmFailure::kRestUnavailable,
                          settings_.server.name() + ": " + made.error().message};
    }
    client_ = *std::move(made);
  }
  token_ = read_token_();
  token_.text = std::string{bare_token(token_.text)};
  deadline_ = now.steady + settings_.timeout;
  version_ = versions_.candidate();
  before_.reset();
  return token_problem(token_, now.wall);
}

std::string RestCalls::user() const {
  if (!settings_.user.empty() || token_.text.empty()) {
    return settings_.user;
  }
  const auto claims = token_claims(token_.text);
  return claims && !claims->user.empty() ? claims->user : settings_.own_user();
}

void RestCalls::get(const std::string& path, SteadyTime now, std::size_t news_at) {
  stream_.reset();  // before the next, so that its connection can be used again
  http::Request request;
  request.path = path;
  request.timeout = deadline_ - now;
  request.news_at = news_at;
  if (const std::string name = user(); !name.empty()) {
    request.headers.emplace_back("X-SLURM-USER-NAME", name);
  }
  if (!token_.text.empty()) {
    request.headers.emplace_back("X-SLURM-USER-TOKEN", token_.text);
  }
  stream_ = client_->open_stream(request);
  ++requests_;
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
  return ended ? judge() : End{0, deadline_failure(settings_.server)};
}

RestCalls::End RestCalls::judge() {
  if (const auto error = stream_->error()) {
    if (error->code != Code::kTimeout) {
      versions_.unreachable();
    }
    return {0, transport_failure(settings_.server, *error)};
  }
  const int status = stream_->status();
  switch (status) {
    case 0:
      versions_.unreachable();
      return {0, no_answer_failure(settings_.server)};
    case kUnauthorized:
      return {status,
              refused_failure(settings_.server, token_.text.empty() ? "" : token_.where, user())};
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
    return no_version_failure(settings_.server);
  }
  version_ = versions_.candidate();
  return std::nullopt;
}

// slurmctld may be down, or only slurmdbd missing: the version below tells.
bool RestCalls::may_be_the_version(int status, const QueryFailure& failure) {
  if (version_ != RestVersions::kNeedsDatabase || status < 500) {
    return false;
  }
  before_ = failure;
  --version_;
  return true;
}

QueryFailure RestCalls::told(QueryFailure failure) const {
  return before_ && before_->cause == SlurmFailure::kControllerUnreachable ? *before_
                                                                           : std::move(failure);
}

void RestCalls::end() {
  stream_.reset();
  token_ = {};
}

}  // namespace slurmlet::slurm
