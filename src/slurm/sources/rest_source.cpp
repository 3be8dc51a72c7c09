#include "slurm/sources/rest_source.h"

#include <fmt/format.h>

#include <utility>

#include "slurm/answers/node_json.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

// One node takes some 4 KB.
constexpr std::size_t kMaxAnswer = std::size_t{1} << 20;

constexpr int kNotModified = 304;
constexpr int kUnauthorized = 401;
constexpr int kNotFound = 404;

// Slurm answered about the node, if only that there is none of that name.
bool is_about_the_node(const QueryResult& result) {
  return result.record || (result.failure && result.failure->cause == SlurmFailure::kNotInSlurm);
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view{"-._~"}.find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::optional<QueryFailure> RestSource::prepare(Now now) {
  if (!client_) {
    auto made = make_client_();
    if (!made) {
      return QueryFailure{SlurmFailure::kRestUnavailable,
                          settings_.server.name() + ": " + made.error().message};
    }
    client_ = *std::move(made);
  }
  token_ = read_token_();
  token_.text = std::string{bare_token(token_.text)};
  return token_problem(token_, now.wall);
}

std::optional<QueryFailure> RestSource::ask(const std::string& node, Query query, Now now) {
  if (auto problem = prepare(now)) {
    return problem;
  }
  node_ = node;
  deadline_ = now.steady + settings_.timeout;
  before_.reset();
  refreshed_ = false;
  refreshing_ = query == Query::kFull && versions_.known() &&
                versions_.candidate() >= RestVersions::kKnowsUpdateTime;
  counters_.full_queries += refreshing_ ? 1 : 0;
  request(versions_.candidate(), now.steady);
  return std::nullopt;
}

// Nothing has changed since a time to come, so the answer to a refresh has no body; slurmctld
// recomputes what is allocated before it looks at the time (_slurm_rpc_dump_nodes).
std::string RestSource::path() const {
  const std::string version = api_version_name(version_);
  if (refreshing_) {
    return fmt::format("/slurm/{}/nodes/?update_time=4102444800", version);
  }
  // Without flags slurmrestd adds MIXED to these two, which puts it over the base state.
  const char* flags = version_ >= RestVersions::kKnowsFlags ? "?flags=ALL&flags=DETAIL" : "";
  return fmt::format("/slurm/{}/node/{}{}", version, percent_encoded(node_), flags);
}

std::string RestSource::user() const {
  if (!settings_.user.empty() || token_.text.empty()) {
    return settings_.user;
  }
  const auto claims = token_claims(token_.text);
  return claims && !claims->user.empty() ? claims->user : settings_.own_user;
}

void RestSource::request(int version, SteadyTime now) {
  stream_.reset();  // before the next, so that its connection can be used again
  version_ = version;
  path_ = path();
  body_.clear();
  http::Request request;
  request.path = path_;
  request.timeout = deadline_ - now;
  if (const std::string name = user(); !name.empty()) {
    request.headers.emplace_back("X-SLURM-USER-NAME", name);
  }
  if (!token_.text.empty()) {
    request.headers.emplace_back("X-SLURM-USER-TOKEN", token_.text);
  }
  stream_ = client_->open_stream(request);
  ++counters_.requests;
}

std::optional<QueryResult> RestSource::poll(Now now) {
  while (stream_) {
    const bool ended = stream_->ended();
    body_ += stream_->take();
    if (body_.size() > kMaxAnswer) {
      return fail(too_long_failure(settings_.server));
    }
    if (!ended && now.steady < deadline_) {
      return std::nullopt;
    }
    auto result = ended ? judge(now.steady) : fail(deadline_failure(settings_.server));
    if (result) {
      return result;
    }
  }
  return std::nullopt;
}

// Nothing when another request has been sent.
std::optional<QueryResult> RestSource::judge(SteadyTime now) {
  if (const auto error = stream_->error()) {
    if (error->code != Code::kTimeout) {
      versions_.unreachable();
    }
    return fail(transport_failure(settings_.server, *error, path_));
  }
  switch (stream_->status()) {
    case 0:
      versions_.unreachable();
      return fail(no_answer_failure(settings_.server));
    case kUnauthorized:
      return fail(
          refused_failure(settings_.server, token_.text.empty() ? "" : token_.where, user()));
    default:
      break;
  }
  if (refreshing_) {
    refreshing_ = false;
    refreshed_ = stream_->status() == kNotModified;
    request(version_, now);
    return std::nullopt;
  }
  return judge_answer(now);
}

std::optional<QueryResult> RestSource::judge_answer(SteadyTime now) {
  if (!is_served()) {
    if (before_) {  // nothing below kNeedsDatabase
      return fail(*before_);
    }
    if (!versions_.not_served()) {
      return fail(no_version_failure(settings_.server));
    }
    request(versions_.candidate(), now);
    return std::nullopt;
  }
  const int status = stream_->status();
  QueryResult result = interpret_rest(status, body_, node_);
  if (is_about_the_node(result)) {
    versions_.answered(version_, parse_nodes_json(body_, status).slurm_version);
    if (result.record) {
      result.record->kind = kind();
    }
    return end(std::move(result));
  }
  // slurmctld may be down, or only slurmdbd missing: the version below tells.
  if (version_ == RestVersions::kNeedsDatabase && status >= 500) {
    before_ = result.failure;
    request(version_ - 1, now);
    return std::nullopt;
  }
  return fail(*result.failure);
}

node::AnswerKind RestSource::kind() const {
  if (refreshed_) {
    return node::AnswerKind::kFullDump;
  }
  return version_ >= RestVersions::kKnowsFlags ? node::AnswerKind::kOneNodeBase
                                               : node::AnswerKind::kOneNode;
}

// A 404 with Slurm's own document is an answer of that version.
bool RestSource::is_served() const {
  return stream_->status() != kNotFound || !parse_nodes_json(body_, kNotFound).api_version.empty();
}

QueryResult RestSource::fail(QueryFailure failure) {
  // Of two versions' words the clearer ones.
  if (before_ && before_->cause == SlurmFailure::kControllerUnreachable) {
    failure = *before_;
  }
  return end({std::nullopt, std::move(failure), std::nullopt});
}

QueryResult RestSource::end(QueryResult result) {
  stream_.reset();
  body_ = {};
  token_ = {};
  return result;
}

}  // namespace slurmlet::slurm
