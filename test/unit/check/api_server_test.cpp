#include "check/api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::check {
namespace api_server_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Stage = RequestFailure::Stage;

const ServerNames kWords{"https://a:1", "kubernetes.server", "/ca.crt"};

Finding judged(Stage stage, int http_status = 0, const ServerNames& words = kWords) {
  ServerAnswer answer;
  answer.problem =
      Error{Code::kUnavailable, "GET /x: y", {}, RequestFailure{stage, http_status, "y"}};
  return server_finding(words, answer);
}

TEST(ApiServerTest, HowFarACallCame) {
  struct Row {
    Stage stage;
    int http_status;
    const char *what, *fix;
  };
  const Row rows[] = {
      {Stage::kName, 0, "cannot be resolved", "DNS"},
      {Stage::kConnection, 0, "cannot be reached", "the address in kubernetes.server"},
      {Stage::kTls, 0, "TLS fails", "load balancer"},
      {Stage::kServerExpired, 0, "its certificate has expired", "kubeadm certs renew apiserver"},
      {Stage::kServerNotYetValid, 0, "its certificate is not yet valid", "clock"},
      {Stage::kServerName, 0, "its certificate is for other names", "kubernetes.server"},
      {Stage::kServerIssuer, 0, "signed by another CA", "put this cluster's CA into /ca.crt"},
      {Stage::kCredential, 0, "rejects this node's credential", "this cluster's CA"},
      {Stage::kCredential, 401, "rejects this node's credential", "this cluster's CA"},
      {Stage::kCredential, 403, "answers with an error", "path included"},
      {Stage::kAnswer, 404, "answers with an error", "path included"},
      {Stage::kAnswer, 0, "answers with an error", "path included"},
  };
  for (const Row& row : rows) {
    const Finding finding = judged(row.stage, row.http_status);
    EXPECT_EQ(finding.severity, Severity::kError);
    EXPECT_THAT(finding.found, HasSubstr("https://a:1: "));
    EXPECT_THAT(finding.found, HasSubstr(row.what));
    EXPECT_THAT(finding.fix, HasSubstr(row.fix)) << row.what;
    EXPECT_EQ(finding.cause, "y");
    if (row.stage != Stage::kServerIssuer) {
      EXPECT_THAT(finding.fix, Not(HasSubstr("CA into"))) << "another CA would be of no help";
    }
  }
}

TEST(ApiServerTest, WordsOfWhoAsks) {
  ServerNames words = kWords;
  words.ca_expired = "at 2026-01-01T00:00:00Z";
  EXPECT_THAT(judged(Stage::kServerExpired, 0, words).fix, HasSubstr("present CA"));
  EXPECT_THAT(judged(Stage::kServerExpired, 0, words).found, HasSubstr("/ca.crt expired at 2026"));
  words.credential = "the bootstrap token";
  words.credential_fix = "kubeadm token create";
  EXPECT_THAT(judged(Stage::kCredential, 401, words).found,
              HasSubstr("rejects the bootstrap token"));
  EXPECT_EQ(judged(Stage::kCredential, 401, words).fix, "kubeadm token create");
}

TEST(ApiServerTest, AnswerAndClock) {
  ServerAnswer answer{{}, "v1.36.2", "system:node:n1", milliseconds{4}, {}};
  EXPECT_EQ(server_finding(kWords, answer),
            ok("https://a:1 v1.36.2 answered in 4 ms as system:node:n1"));
  answer.took = seconds{2};
  EXPECT_EQ(server_finding(kWords, answer).severity, Severity::kWarning);
  EXPECT_THAT(clock_findings(answer), IsEmpty());
  answer.skew = milliseconds{4900};
  EXPECT_EQ(clock_findings(answer).at(0).severity, Severity::kOk);
  answer.skew = seconds{7};
  EXPECT_THAT(clock_findings(answer).at(0).found, HasSubstr("7 s ahead of"));
  answer.skew = -seconds{7};
  EXPECT_THAT(clock_findings(answer).at(0).found, HasSubstr("7 s behind"));
}

}  // namespace api_server_test
}  // namespace slurmlet::check
