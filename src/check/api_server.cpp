#include "check/api_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/rfc3339.h"
#include "base/text.h"
#include "tls/certificates.h"

namespace slurmlet::check {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Stage = RequestFailure::Stage;

// The Date header has whole seconds, and an answer takes its time.
constexpr Duration kSkewThatCounts = seconds{5};
constexpr Duration kSlowAnswer = seconds{1};
constexpr int kUnauthorized = 401;

struct Problem {
  Stage stage;
  const char* what;
  const char* fix;
};
constexpr std::array kProblems = std::to_array<Problem>({
    {Stage::kName, "the name cannot be resolved",
     "check the name, and this machine's DNS (getent hosts NAME)"},
    {Stage::kConnection, "cannot be reached",
     "check that it is running, the network, the firewall and the address in {url_place}"},
    {Stage::kTls, "TLS fails",
     "check that the address in {url_place} is the API server's (https), that no proxy answers in "
     "its place, and that a load balancer in front of it has a running API server behind it"},
    {Stage::kServerExpired, "its certificate has expired",
     "renew it (kubeadm certs renew apiserver, on each control plane node), or correct this "
     "machine's clock if it is ahead"},
    {Stage::kServerNotYetValid, "its certificate is not yet valid",
     "correct this machine's clock if it is behind (timedatectl); else the API server's"},
    {Stage::kServerName, "its certificate is for other names",
     "name the server in {url_place} as its certificate does (or in tls-server-name of the "
     "kubeconfig), or add this name to the certificate"},
    {Stage::kServerIssuer, "its certificate is signed by another CA",
     "put this cluster's CA into {ca_place}"},
    {Stage::kCredential, "rejects {credential}", "{credential_fix}"},
});

Problem problem_of(const ServerNames& words, const Error& error) {
  const RequestFailure request = error.request.value_or(RequestFailure{});
  if (request.stage == Stage::kServerExpired && !words.ca_expired.empty()) {
    return {Stage::kServerExpired, "the CA in {ca_place} expired {ca_expired}",
            "put this cluster's present CA there, or correct this machine's clock if it is ahead"};
  }
  const bool is_rejected = request.http_status == kUnauthorized;
  const Stage stage = is_rejected ? Stage::kCredential : request.stage;
  const auto found = std::find_if(kProblems.begin(), kProblems.end(),
                                  [stage](const Problem& each) { return each.stage == stage; });
  // The version may be read by anybody: another HTTP status is of something in front of it.
  if ((request.http_status != 0 && !is_rejected) || found == kProblems.end()) {
    return {Stage::kAnswer, "answers with an error",
            "check that the URL in {url_place} is the API server's, path included, and its log"};
  }
  return *found;
}

// When the last of the CAs expired, if all have: "at 2026-…".
std::string expired_ca(const std::string& pem, WallTime now) {
  const auto bundle = tls::certificates_with_pins(pem, "");
  WallTime last = WallTime::min();
  for (const auto& one : bundle ? *bundle : std::vector<tls::PinnedCertificate>{}) {
    const auto read = tls::read_certificate(one.pem, "");
    last = std::max(last, read ? read->not_after : now);
  }
  return bundle && last < now ? "at " + rfc3339(last) : "";
}

}  // namespace

ServerNames server_names(const credentials::ApiAccess& access,
                         const config::KubernetesSettings& kubernetes) {
  ServerNames out;
  out.url = access.server();
  out.ca_expired = expired_ca(access.ca_pem(), SystemClock{}.now().wall);
  if (!kubernetes.kubeconfig.empty()) {
    out.url_place = kubernetes.kubeconfig;
    out.ca_place = kubernetes.kubeconfig + " (certificate-authority)";
  } else {
    out.url_place = "kubernetes.server";
    out.ca_place = kubernetes.ca_file.empty() ? "kubernetes.caData" : kubernetes.ca_file;
  }
  return out;
}

ServerAnswer ask_server(http::Client& client, kube::CallOptions options) {
  ServerAnswer out;
  std::optional<WallTime> date;  // of the last answer
  options.on_server_date = [&date](WallTime server_date) { date = server_date; };
  const auto before = SystemClock{}.now();
  const auto version = kube::server_version(client, options);
  const auto after = SystemClock{}.now();
  out.took = after.steady - before.steady;
  if (date) {
    const WallTime middle = before.wall + (after.wall - before.wall) / 2;
    out.skew = middle - (*date + milliseconds{500});
  }
  if (!version) {
    out.problem = version.error();
    return out;
  }
  out.version = *version;
  if (const auto user = kube::who_am_i(client, options)) {
    out.user = user->name;
  } else if (user.error().request && user.error().request->http_status == kUnauthorized) {
    out.problem = user.error();  // the version needs no permission
  }
  return out;
}

Finding server_finding(const ServerNames& words, const ServerAnswer& answer) {
  if (answer.problem) {
    const Problem problem = problem_of(words, *answer.problem);
    const auto filled = [&](const char* text) {
      return fmt::format(fmt::runtime(text), fmt::arg("url_place", words.url_place),
                         fmt::arg("ca_place", words.ca_place),
                         fmt::arg("ca_expired", words.ca_expired),
                         fmt::arg("credential", words.credential),
                         fmt::arg("credential_fix", words.credential_fix));
    };
    return error(words.url + ": " + filled(problem.what), filled(problem.fix),
                 answer.problem->reason());
  }
  std::string found =
      fmt::format("{} {} answered in {}{}", words.url, answer.version,
                  milliseconds_text(answer.took), answer.user.empty() ? "" : " as " + answer.user);
  return answer.took > kSlowAnswer
             ? warning(std::move(found),
                       "check the network, name resolution and the API server's load")
             : ok(std::move(found));
}

Findings clock_findings(const ServerAnswer& answer) {
  if (!answer.skew) {
    return {};
  }
  const auto off = std::chrono::round<seconds>(*answer.skew).count();
  if (std::chrono::abs(*answer.skew) < kSkewThatCounts) {
    return {ok("agrees with the API server's")};
  }
  return {warning(
      fmt::format("{} s {} the API server's", std::abs(off), off > 0 ? "ahead of" : "behind"),
      "correct it (chronyc tracking, timedatectl): certificates and munge depend on it")};
}

Findings rights_findings(http::Client& client, const kube::CallOptions& options,
                         const std::vector<kube::OwnRight>& needed) {
  std::vector<std::string> missing;
  std::string reason;
  Findings out;
  for (const auto& right : needed) {
    const auto review = kube::review_own_right(client, options, right);
    if (!review) {
      out.push_back(warning("not all could be checked", "", review.error().reason()));
      break;
    }
    if (!review->allowed) {
      missing.push_back(kube::describe(right));
      reason = reason.empty() ? review->reason : reason;
    }
  }
  if (!missing.empty()) {
    out.insert(out.begin(), error(fmt::format("{} of {} missing: {}", missing.size(), needed.size(),
                                              join(missing, "; ")),
                                  "", reason));
  }
  return out.empty() ? Findings{ok(fmt::format("all {} that it needs", needed.size()))} : out;
}

}  // namespace slurmlet::check
