#include "slurm/sources/rest_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "slurm/answers/node_json.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

constexpr int kOk = 200;
constexpr std::size_t kMaxBody = std::size_t{1} << 20;
// The loop has other work between them, but not for each packet.
constexpr std::size_t kPiece = std::size_t{512} << 10;

}  // namespace

Status RestDump::start(Now now, bool or_unchanged) {
  if (auto problem = calls_.begin(now)) {
    return Error{Code::kUnavailable, failure_text(*problem)};
  }
  began_ = now.steady;
  began_at_ = now.wall;
  or_unchanged_ = or_unchanged && updated_at_ && calls_.version_known() &&
                  WallTime::clock::to_time_t(now.wall) >= *updated_at_;
  request(now.steady);
  return {};
}

void RestDump::request(SteadyTime now) {
  reader_ = NodeListReader{};
  body_.clear();
  const int version = calls_.version();
  std::string path = fmt::format("/slurm/{}/nodes/", api_version_name(version));
  if (or_unchanged_) {
    path += "?update_time=" + update_time(version, *updated_at_);
  }
  calls_.get(path, now, kPiece);
}

std::optional<QueryFailure> RestDump::take(int status, const std::string& piece) {
  if (status == kOk) {
    const Status fed = reader_.feed(piece);
    return fed ? std::nullopt
               : std::optional{QueryFailure{SlurmFailure::kInvalidResponse,
                                            calls_.name() + ": " + fed.error().message}};
  }
  body_ += piece;
  return body_.size() > kMaxBody ? std::optional{calls_.too_long("an error")} : std::nullopt;
}

std::optional<Result<DumpSource::Answer>> RestDump::poll(Now now) {
  const auto take_piece = [this](int status, const std::string& piece) {
    return take(status, piece);
  };
  while (const auto end = calls_.poll(now.steady, take_piece)) {
    if (auto result = judge(*end, now.steady)) {
      calls_.end();
      reader_ = NodeListReader{};
      body_ = {};
      return result;
    }
  }
  return std::nullopt;
}

// Nothing when another request has been sent.
std::optional<Result<DumpSource::Answer>> RestDump::judge(const RestCalls::End& end,
                                                          SteadyTime now) {
  if (end.failure) {
    QueryFailure failure = *end.failure;
    if (failure.cause == SlurmFailure::kTimeout) {  // slurmctld may well be there
      failure.cause = SlurmFailure::kRestUnavailable;
    }
    return fail(std::move(failure));
  }
  if (end.status == kNotModified && or_unchanged_) {
    return Answer{std::nullopt, now - began_};
  }
  return end.status == kOk ? judge_nodes(now) : judge_failure(end.status, now);
}

std::optional<Result<DumpSource::Answer>> RestDump::judge_failure(int status, SteadyTime now) {
  if (!RestCalls::is_served(status, body_)) {
    if (const auto failure = calls_.not_served()) {
      return fail(*failure);
    }
  } else {
    const NodesAnswer answer = parse_nodes_json(body_, status);
    auto failure = answer.failure.value_or(
        QueryFailure{SlurmFailure::kInvalidResponse, "an answer without nodes"});
    if (failure.cause == SlurmFailure::kRateLimited && answer.api_version.empty()) {
      failure.cause = SlurmFailure::kRestUnavailable;  // a proxy's word
    }
    if (!or_unchanged_ && !calls_.may_be_the_version(status, failure)) {
      return fail(failure);
    }
  }
  or_unchanged_ = false;
  request(now);
  return std::nullopt;
}

Result<DumpSource::Answer> RestDump::judge_nodes(SteadyTime now) {
  const NodesAnswer frame = parse_nodes_json(reader_.frame(), kOk);
  auto records = reader_.take_records();
  if (frame.no_nodes && !reader_.has_nodes()) {
    return Error{
        Code::kNotFound,
        "slurmctld shows no nodes at all (with PrivateData=nodes, the user of the token, or of "
        "slurmrestd's socket, must be a Slurm operator)"};
  }
  if (!frame.no_nodes || records.empty()) {
    const QueryFailure no_list{SlurmFailure::kInvalidResponse, "the answer is not a list of nodes"};
    return fail(frame.no_nodes ? no_list : frame.failure.value_or(no_list));
  }
  calls_.answered(frame.slurm_version);
  updated_at_ = frame.last_update;
  if (updated_at_) {  // slurmctld's clock may have been ahead
    updated_at_ = std::min(*updated_at_, std::int64_t{WallTime::clock::to_time_t(began_at_)});
  }
  return Answer{std::move(records), now - began_, frame.cluster};
}

Error RestDump::fail(QueryFailure failure) {
  return {Code::kUnavailable, failure_text(calls_.to_report(std::move(failure)))};
}

}  // namespace slurmlet::slurm
