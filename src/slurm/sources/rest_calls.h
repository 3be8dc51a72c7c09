#pragma once

// The GETs to slurmrestd that make up one query of slurmlet-operator: who we are, which version is
// asked, and what a transport that failed means: in words that stay the same while the cause does.
// The GETs of one query share its deadline.
//
// On a unix socket slurmrestd checks our uid (rest_auth/local), so no header is sent unless there
// is a token; elsewhere X-SLURM-USER-TOKEN and X-SLURM-USER-NAME, which releases before
// 25.11 demand too. Never "Authorization" as well: auth/jwt rejects both at once.
//
// Not thread-safe; belongs to the thread of its client.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "http/client.h"
#include "slurm/answers/query_result.h"
#include "slurm/sources/rest_token.h"
#include "slurm/sources/rest_versions.h"

namespace slurmlet::slurm {

inline constexpr int kNotModified = 304;

struct RestSettings {
  std::string url;  // "unix:/run/slurmrestd.socket", "https://head:6820"
  // Our own, for a token that does not name its user; "" = not known now.
  std::function<std::string()> own_user = [] { return ""; };
  Duration timeout = std::chrono::seconds{15};
  // Makes the connection's client; called again for the next query while it fails (a CA file that
  // is not there yet).
  std::function<Result<std::unique_ptr<http::Client>>()> make_client = {};
  std::function<RestToken()> read_token = {};  // for each query: tokens rotate
  bool is_socket() const { return url.starts_with("unix:"); }
  // "slurmrestd unix:/run/slurmrestd.socket"
  std::string name() const { return "slurmrestd " + url; }
};

class RestCalls {
 public:
  // Gets each piece of a body as it comes; what it returns ends the request.
  using Take = std::function<std::optional<QueryFailure>(int status, const std::string& piece)>;
  // How a request ended: with a status, or with why there is none.
  struct End {
    int status = 0;
    std::optional<QueryFailure> failure;
  };

  explicit RestCalls(RestSettings settings) : settings_(std::move(settings)) {}
  RestCalls(const RestCalls&) = delete;  // a request under way knows it
  RestCalls& operator=(const RestCalls&) = delete;

  // A query begins. Why it cannot; nothing when version() may be queried.
  std::optional<QueryFailure> begin(Now now);
  // `notify_at` as in http::Request.
  void get(const std::string& path, SteadyTime now, std::size_t notify_at = 0);
  std::optional<End> poll(SteadyTime now, const Take& take);
  void end();  // of the query

  bool busy() const { return stream_ != nullptr; }
  SteadyTime deadline() const { return deadline_; }
  std::string name() const { return settings_.name(); }

  int version() const { return version_; }  // to query: 44 of v0.0.44
  bool version_known() const { return versions_.known(); }
  // version() has answered about a node; `release` as in RestVersions.
  void answered(const std::string& release) { versions_.answered(version_, release); }
  // Whether version() is what answered. A 404 with Slurm's own document is an answer.
  static bool is_served(int status, const std::string& body);
  // It is not. Nothing when there is another version() now.
  std::optional<QueryFailure> not_served();
  // Whether a server's failure may be that of this version alone: then version() is the one below.
  bool may_be_the_version(int status, const QueryFailure& failure);
  // Of two versions' words the clearer ones.
  QueryFailure to_report(QueryFailure failure) const;
  // An answer longer than `what` it can only have: "the record of one node".
  QueryFailure too_long(const std::string& what) const;

 private:
  std::string user() const;
  End judge();

  RestSettings settings_;
  RestVersions versions_;
  std::unique_ptr<http::Client> client_;

  // Of the query under way.
  RestToken token_;
  std::string user_;
  SteadyTime deadline_ = kNever;
  int version_ = 0;
  std::optional<QueryFailure> before_;  // what kNeedsDatabase said, while the one below it is tried
  std::unique_ptr<http::Stream> stream_;  // goes before its client
};

}  // namespace slurmlet::slurm
