// The kubelet's rules against the kubelet's behaviour, and the matrix of identity × path × verb
// through gate and routes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/text.h"
#include "fixtures.h"
#include "podapi/fake_review_api.h"
#include "podapi/gate.h"
#include "podapi/gate_fixture.h"
#include "podapi/kubelet_routes.h"
#include "podapi/request_path.h"

namespace slurmlet::podapi {
namespace {

using ::testing::ElementsAre;

TEST(RequestAttributes, AreTheKubelets) {
  const auto text = read_file(fixtures() / "kubelet/attributes-1.36.tsv");
  ASSERT_TRUE(text) << text.error().message;
  int rows = 0;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const auto fields = split(line, '\t');
    ASSERT_EQ(fields.size(), 5U) << line;
    const auto attributes = request_attributes(std::string{fields[0]}, std::string{fields[1]});
    EXPECT_EQ(normalized_path(fields[1]), std::string{fields[2]}) << line;
    EXPECT_EQ(attributes.verb, fields[3] == "-" ? "" : fields[3]) << line;
    EXPECT_EQ(join(attributes.subresources, ","), fields[4]) << line;
    ++rows;
  }
  EXPECT_GE(rows, 700);
}

TEST(RequestAttributes, OfAnInvalidPath) {
  EXPECT_THAT(request_attributes("GET", "/pods%").subresources, ElementsAre("proxy"));
  EXPECT_THAT(request_attributes("GET", "/pods%00").subresources, ElementsAre("proxy"));
  EXPECT_THAT(request_attributes("GET", "").subresources, ElementsAre("proxy"));
}

// An identity and its rights: "verb subresource", "*" = any.
struct Identity {
  std::string name;
  std::set<std::string> grants;
  bool may(const std::string& verb, const std::string& subresource) const {
    return grants.contains("* *") || grants.contains(verb + " " + subresource) ||
           grants.contains("* " + subresource);
  }
};
const std::vector<Identity> kIdentities{
    {"cluster-admin", {"* *"}},
    // ClusterRole system:kubelet-api-admin, which the API server's client certificate has.
    {"kube-apiserver-kubelet-client",
     {"* proxy", "* log", "* stats", "* metrics", "* pods", "* healthz", "* configz"}},
    {"prometheus", {"get metrics"}},
    {"metrics-server", {"get metrics", "get stats"}},
    {"viewer", {"get pods", "get healthz", "get configz"}},
    {"old-proxy-reader", {"get proxy"}},
    {"checkpointer", {"create checkpoint"}},
    {"nobody", {}},
};

// The subresources that the gate must review for each path, copied from the kubelet, and the
// route's answers.
struct Path {
  std::string path;
  std::vector<std::string> subresources;
  int get, post, put, remove, head;  // HTTP status once allowed
};
const std::vector<Path> kPaths{
    {"/pods", {"pods", "proxy"}, 200, 405, 405, 405, 200},
    {"/pods/", {"pods", "proxy"}, 200, 405, 405, 405, 200},
    {"/runningpods/", {"pods", "proxy"}, 200, 405, 405, 405, 200},
    {"/runningPods/", {"proxy"}, 404, 404, 404, 404, 404},
    {"/healthz", {"healthz", "proxy"}, 200, 405, 405, 405, 200},
    {"/healthz/syncloop", {"healthz", "proxy"}, 200, 405, 405, 405, 200},
    {"/healthz/other", {"healthz", "proxy"}, 404, 405, 405, 405, 404},
    {"/readyz", {"proxy"}, 200, 405, 405, 405, 200},
    {"/configz", {"configz", "proxy"}, 200, 405, 405, 405, 200},
    {"/metrics", {"metrics"}, 200, 405, 405, 405, 200},
    {"/metrics/resource", {"metrics"}, 200, 405, 405, 405, 200},
    {"/metrics/cadvisor", {"metrics"}, 200, 405, 405, 405, 200},
    {"/metrics/probes", {"metrics"}, 200, 405, 405, 405, 200},
    {"/metrics/unknown", {"metrics"}, 404, 404, 404, 404, 404},
    {"/stats/summary", {"stats"}, 200, 200, 405, 405, 200},
    {"/stats/", {"stats"}, 404, 404, 404, 404, 404},
    {"/logs/syslog", {"log"}, 404, 404, 404, 404, 404},
    {"/checkpoint/ns/pod/c", {"checkpoint"}, 405, 400, 405, 405, 405},
    {"/containerLogs/ns/pod/c", {"proxy"}, 400, 405, 405, 405, 405},
    {"/exec/ns/pod/c", {"proxy"}, 400, 400, 405, 405, 405},
    {"/exec/ns/pod/uid/c", {"proxy"}, 400, 400, 405, 405, 405},
    {"/attach/ns/pod/c", {"proxy"}, 400, 400, 405, 405, 405},
    {"/portForward/ns/pod", {"proxy"}, 400, 400, 405, 405, 405},
    {"/run/ns/pod/c", {"proxy"}, 405, 400, 405, 405, 405},
    {"/statusz", {"statusz"}, 404, 404, 404, 404, 404},
    {"/flagz", {"configz"}, 404, 404, 404, 404, 404},
    {"/debug/pprof/heap", {"proxy"}, 404, 404, 404, 404, 404},
    {"/unknown", {"proxy"}, 404, 404, 404, 404, 404},
    {"/%70ods/../metrics", {"metrics"}, 200, 405, 405, 405, 200},
    {"/metrics/%2e%2e/exec/ns/pod/c", {"proxy"}, 400, 400, 405, 405, 405},
    {"/metrics/%zz", {"proxy"}, 400, 400, 400, 400, 400},
};
struct Method {
  std::string name, verb;
  int Path::*status;
};
const std::vector<Method> kMethods{{"GET", "get", &Path::get},
                                   {"POST", "create", &Path::post},
                                   {"PUT", "update", &Path::put},
                                   {"DELETE", "delete", &Path::remove},
                                   {"HEAD", "", &Path::head}};

class Endpoint {
 public:
  Endpoint()
      : gate_(
            api_,
            [this](const RequestHead& head) {
              ++snapshots_;
              EXPECT_TRUE(head.headers.empty()) << "the routes see no credential";
              KubeletSnapshot snapshot;
              snapshot.usage = node::Usage{};
              return handle_kubelet(head, snapshot);
            },
            unlimited()) {}

  Response send(const RequestHead& head, const Caller& caller) {
    const Now now = fakes::FakeClock{}.now();
    ++id_;
    if (auto response = gate_.begin(id_, caller, head, now)) {
      return *response;
    }
    SteadyTime next = kNever;
    const auto answers = gate_.take_answers(now, next);
    return answers.size() == 1 && answers[0].first == id_ ? answers[0].second
                                                          : Response{0, "", "", {}};
  }
  int snapshots() const { return snapshots_; }

  fakes::FakeReviewApi api_;

 private:
  static GateOptions unlimited() {
    GateOptions options;
    options.node_name = "n1";
    options.reviews = {1, 1e6};
    return options;
  }
  int snapshots_ = 0;
  RequestId id_ = 0;
  Gate gate_;
};

class AuthorizationMatrix : public ::testing::TestWithParam<Identity> {};

TEST_P(AuthorizationMatrix, SendsTheKubeletsQueriesAndFollowsTheAnswers) {
  const Identity& identity = GetParam();
  for (const Path& path : kPaths) {
    for (const Method& method : kMethods) {
      for (const bool by_token : {false, true}) {
        Endpoint endpoint;
        std::vector<std::string> reviewed;
        endpoint.api_.tokens = [&](const std::string&) {
          return fakes::FakeReviewApi::user(identity.name);
        };
        endpoint.api_.access = [&](const kube::AccessCheck& query) {
          EXPECT_EQ(query.user.name, identity.name);
          EXPECT_EQ(query.verb, method.verb);
          EXPECT_EQ(query.node_name, "n1");
          reviewed.push_back(query.subresource);
          return kube::AccessReview{identity.may(query.verb, query.subresource), ""};
        };
        const auto response =
            endpoint.send(request(method.name, path.path, by_token ? "Bearer t" : ""),
                          by_token ? Caller{} : certificate(identity.name));

        std::vector<std::string> expected;
        bool allowed = false;
        for (const auto& subresource : path.subresources) {
          if (!allowed) {
            expected.push_back(subresource);
            allowed = identity.may(method.verb, subresource);
          }
        }
        const std::string row = identity.name + " " + method.name + " " + path.path;
        EXPECT_EQ(reviewed, expected) << row;
        EXPECT_EQ(response.status, allowed ? path.*method.status : 403) << row;
        EXPECT_EQ(endpoint.snapshots(), allowed ? 1 : 0) << row << ": no handler unauthorized";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Everyone, AuthorizationMatrix, ::testing::ValuesIn(kIdentities),
                         [](const auto& identity) {
                           std::string name = identity.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(AuthorizationMatrixCells, NothingReachesAHandlerWithoutAuthorization) {
  for (const Path& path : kPaths) {
    for (const Method& method : kMethods) {
      Endpoint endpoint;
      endpoint.api_.access = [](const kube::AccessCheck&) {
        return Error{Code::kUnavailable, "down"};
      };
      EXPECT_EQ(endpoint.send(request(method.name, path.path), {}).status, 401) << path.path;
      EXPECT_EQ(endpoint.send(request(method.name, path.path), certificate("a")).status, 503)
          << path.path;
      EXPECT_EQ(endpoint.snapshots(), 0) << path.path;
    }
  }
}

}  // namespace
}  // namespace slurmlet::podapi
