#pragma once

// The NodeSource that asks slurmrestd: GET /slurm/v0.0.NN/node/NAME over a unix socket or HTTP(S);
// for a full query GET …/nodes/ before it, in the form that has an empty answer.
// One node is cheap for slurmctld (as sinfo.h says of its query). The version is found once
// (rest_versions.h); all requests of a question count as one question and share its deadline.
//
// Who we are: on a unix socket slurmrestd looks at our uid (rest_auth/local), so no header is sent
// but those that were configured; elsewhere X-SLURM-USER-TOKEN and X-SLURM-USER-NAME, which
// releases before 25.11 demand too. Never "Authorization" as well: auth/jwt refuses both at once.
//
// Not thread-safe; belongs to the thread of its client.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "http/client.h"
#include "slurm/sources/node_source.h"
#include "slurm/sources/rest_refusal.h"
#include "slurm/sources/rest_token.h"
#include "slurm/sources/rest_versions.h"

namespace slurmlet::slurm {

struct RestSettings {
  RestServer server;
  std::string user;      // X-SLURM-USER-NAME; "" = the token's, and without a token none
  std::string own_user;  // where the token does not tell its user
  Duration timeout = std::chrono::seconds{15};
};

// Makes the connection's client; called again for the next question while it fails (a CA file that
// is not there yet).
using RestClientMaker = std::function<Result<std::unique_ptr<http::Client>>()>;

class RestSource final : public NodeSource {
 public:
  RestSource(RestSettings settings, RestClientMaker make_client, RestTokenReader read_token)
      : settings_(std::move(settings)),
        make_client_(std::move(make_client)),
        read_token_(std::move(read_token)) {}

  std::optional<QueryFailure> ask(const std::string& node, Query query, Now now) override;
  bool busy() const override { return stream_ != nullptr; }
  std::optional<QueryResult> poll(Now now) override;
  SteadyTime wake_at() const override { return busy() ? deadline_ : kNever; }
  std::vector<int> wake_fds() const override { return {}; }
  std::string name() const override { return settings_.server.name(); }
  SourceCounters counters() const override { return counters_; }

 private:
  std::optional<QueryFailure> prepare(Now now);
  std::string user() const;
  void request(int version, SteadyTime now);
  std::string path() const;
  node::AnswerKind kind() const;
  std::optional<QueryResult> judge(SteadyTime now);
  std::optional<QueryResult> judge_answer(SteadyTime now);
  bool is_served() const;
  QueryResult end(QueryResult result);
  QueryResult fail(QueryFailure failure);

  RestSettings settings_;
  RestClientMaker make_client_;
  RestTokenReader read_token_;
  RestVersions versions_;
  SourceCounters counters_;
  std::unique_ptr<http::Client> client_;

  // Of the question under way.
  std::string node_;
  RestToken token_;
  SteadyTime deadline_ = kNever;
  int version_ = 0;          // asked now
  bool refreshing_ = false;  // the request is the one before that for the node: Query::kFull
  bool refreshed_ = false;   // what is allocated has been recomputed for this question
  std::string path_;
  std::string body_;
  std::optional<QueryFailure> before_;  // what kNeedsDatabase said, while the one below it is tried
  std::unique_ptr<http::Stream> stream_;  // goes before its client
};

// Everything but letters, digits and "-._~" as %XX (RFC 3986).
std::string percent_encoded(std::string_view text);

}  // namespace slurmlet::slurm
