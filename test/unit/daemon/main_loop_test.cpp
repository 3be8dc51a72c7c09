// MainLoop: what one turn does with its loops, and in which order. The loops themselves are tested
// in sync/ and credentials/. The API server is a few objects in memory; slurm.conf is a file of the
// test; of this machine only /proc and /sys are real, and nothing here depends on what they say.

#include "daemon/main_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "fakes/fake_clock.h"
#include "fakes/fake_http_client.h"
#include "fakes/hanging_file.h"
#include "fakes/kubeconfig.h"
#include "fakes/temp_tree.h"
#include "host/addresses.h"
#include "tls/test_certificates.h"

namespace slurmlet::daemon {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr const char* kNode = "/api/v1/nodes/n1";

// As much of an API server as a Node needs.
class ApiServer {
 public:
  http::Response answer(const http::Request& request) {
    if (down || denies) {
      return respond(down ? 500 : 401, {{"kind", "Status"}, {"message", "no"}});
    }
    const std::string path = request.path.substr(0, request.path.find('?'));
    if (request.method == "POST" && path == "/api/v1/nodes") {
      node = json::parse(request.body);
      node["metadata"]["uid"] = "uid-1";
      node["metadata"]["resourceVersion"] = "1";
      return respond(201, node);
    }
    if (path.starts_with(kNode)) {
      if (node.is_null()) {
        return respond(404, {{"kind", "Status"}, {"reason", "NotFound"}});
      }
      if (request.method == "PATCH") {
        patches.push_back(json::parse(request.body));
        node.merge_patch(patches.back());
      }
      return respond(200, node);
    }
    if (request.method == "GET" && path.ends_with("s") && path.find("/leases/") == path.npos) {
      const bool nodes = path.ends_with("/nodes") && !node.is_null();
      return respond(200, {{"kind", "List"},
                           {"metadata", {{"resourceVersion", "1"}}},
                           {"items", nodes ? json::array({node}) : json::array()}});
    }
    return request.method == "GET" ? respond(404, {{"kind", "Status"}, {"reason", "NotFound"}})
                                   : respond(201, {{"kind", "Status"}});
  }

  bool down = false, denies = false;
  json node;                  // null = there is none
  std::vector<json> patches;  // of the Node, in order

 private:
  static http::Response respond(int status, const json& body) {
    http::Response response;
    response.status = status;
    response.body = body.dump();
    return response;
  }
};

class MainLoopTest : public ::testing::Test {
 protected:
  MainLoopTest() {
    tree_.file("ca.crt", ca_.certificate)
        .file("own.pem", new_credential())
        .file("kubeconfig",
              fakes::kubeconfig("server: 'https://127.0.0.1:1', certificate-authority: ca.crt",
                                "client-certificate: own.pem, client-key: own.pem"))
        .file("slurm.conf", "ClusterName=alps\nSlurmctldHost=localhost\nNodeName=nid1\n")
        .dir("state")
        .dir("bin");
    settings_.state_dir = tree_.path("state").string();
    settings_.kubernetes.kubeconfig = tree_.path("kubeconfig").string();
    settings_.kubernetes.cert_dir = tree_.path("state/pki").string();
    settings_.node.ready_follows = node::ReadyFollows::kDaemon;
    settings_.slurm.conf = tree_.path("slurm.conf").string();
    settings_.slurm.node_name = "nid1";
    settings_.slurm.bin_dir =
        tree_.path("bin").string();  // no scontrol: slurmctld cannot be queried
    settings_.slurm.source = node::SlurmSource::kScontrol;
    settings_.endpoint.port = 0;
    identity_.policy.node_name = "n1";
    identity_.policy.ready_follows = node::ReadyFollows::kDaemon;
    identity_.hostname = "nid1";
    identity_.boot_id = "boot-1";
  }

  std::string new_credential() const {
    const auto own =
        tls::issue(ca_, {.common_name = "system:node:n1", .organizations = {"system:nodes"}});
    return own.certificate + own.key;
  }

  // A process of slurmlet, with what an earlier one left in its state directory.
  void start() {
    loop_.reset();
    serving_.reset();
    access_.reset();
    shared_.reset(new Shared{service_, clock_});
    auto access = credentials::ApiAccess::open(settings_, clock_);
    ASSERT_TRUE(access) << access.error().message;
    access_.emplace(*std::move(access));
    serving_.emplace(settings_.endpoint, "n1", access_->ca_pem());
    auto client = std::make_unique<fakes::FakeHttpClient>();
    client_ = client.get();
    client_->responder = [this](const http::Request& request) { return server_.answer(request); };
    client_->stream_status = 200;  // watches without news
    loop_.emplace(settings_, identity_, *access_, *serving_, std::move(client), *shared_);
  }
  SteadyTime step() { return loop_->step(); }
  // Turn by turn.
  void run(Duration time) {
    clock_.run(time, [this] { return step(); });
  }
  void start_and_register() {
    start();
    run(seconds{5});
    ASSERT_TRUE(report().registered) << why_not();
  }
  status::Report report() const {
    const auto published = shared_->report.get();
    return published ? *published : status::Report{};
  }
  std::string why_not() const {
    const auto known = report();
    return known.block_reason + (known.api_error ? known.api_error->message : "");
  }
  bool asked(const std::string& method, const std::string& beginning) const {
    return std::any_of(client_->requests.begin(), client_->requests.end(), [&](const auto& one) {
      return one.method == method && one.path.starts_with(beginning);
    });
  }
  // Of the last PATCH that has any.
  json conditions() const {
    for (auto patch = server_.patches.rbegin(); patch != server_.patches.rend(); ++patch) {
      if (patch->contains("status") && patch->at("status").contains("conditions")) {
        return patch->at("status").at("conditions");
      }
    }
    return json::array();
  }

  tls::Issued ca_ = tls::make_self_signed({.common_name = "test-ca", .is_ca = true});
  fakes::TempTree tree_;
  fakes::FakeClock clock_;
  config::Settings settings_;
  NodeIdentity identity_;
  ApiServer server_;
  status::ServiceReport service_{status::Notifier{}, std::nullopt};
  std::unique_ptr<Shared> shared_;
  std::optional<credentials::ApiAccess> access_;
  std::optional<credentials::ServingCertificate> serving_;
  fakes::FakeHttpClient* client_ = nullptr;
  std::optional<MainLoop> loop_;
};

TEST_F(MainLoopTest, RegistersTheNodeAndPublishesWhatItKnows) {
  start_and_register();
  EXPECT_TRUE(asked("POST", "/api/v1/nodes?"));
  EXPECT_EQ(server_.node["metadata"]["name"], "n1");
  EXPECT_EQ(server_.node["metadata"]["labels"]["slurmlet.io/slurm-cluster"], "alps");
  const auto known = report();
  EXPECT_EQ(known.node_name, "n1");
  EXPECT_EQ(known.facts.slurm_conf.node_name, "nid1");
  EXPECT_EQ(known.ready.type, "Ready");
  EXPECT_EQ(known.ready.reason, "SlurmletRunning");
  EXPECT_EQ(known.api_server, "https://127.0.0.1:1");
  EXPECT_TRUE(known.certificates.client_not_after);
  EXPECT_EQ(*shared_->lease.node_uid.get(), "uid-1") << "the lease thread waits for it";
}

// For nothing but slurm.conf, which says how many nodes start beside this one.
TEST_F(MainLoopTest, TheLeaseThreadBeginsBeforeTheFirstCall) {
  start_and_register();
  start();
  bool has_begun = false;
  client_->responder = [&](const http::Request& request) {
    has_begun = has_begun || shared_->lease.start.get();
    EXPECT_TRUE(has_begun) << request.path;
    return server_.answer(request);
  };
  step();
  EXPECT_TRUE(has_begun);
}

TEST_F(MainLoopTest, TheAddressThatReachesTheApiServerIsThereFromTheBeginning) {
  const auto ours = host::read_addresses({});
  if (ours.size() < 2) {
    GTEST_SKIP() << "this machine has one address";
  }
  start();
  client_->address = ours.back();
  run(seconds{5});
  EXPECT_EQ(server_.node["status"]["addresses"][0]["address"], ours.back());
}

TEST_F(MainLoopTest, WhatTheMachineKnowsDoesNotWaitForTheApiServerButPodsForTheNode) {
  server_.down = true;
  start();
  bool published = false;
  client_->responder = [&](const http::Request& request) {
    published = published || report().ready.type == "Ready";
    return server_.answer(request);
  };
  run(minutes{1});
  EXPECT_TRUE(published) << "before the first call returned";
  EXPECT_FALSE(report().registered);
  ASSERT_TRUE(report().api_error);
  EXPECT_FALSE(asked("GET", "/api/v1/pods"));
  server_.down = false;
  run(minutes{1});
  EXPECT_TRUE(report().registered);
  EXPECT_FALSE(report().api_error) << why_not();
  EXPECT_TRUE(asked("GET", "/api/v1/pods"));
}

TEST_F(MainLoopTest, AReplacedCredentialIsTriedSoon) {
  server_.denies = true;
  start();
  run(minutes{5});
  ASSERT_FALSE(report().registered);
  tree_.file("own.pem", new_credential());
  server_.denies = false;
  step();  // sees the file
  run(seconds{11});
  EXPECT_TRUE(report().registered) << why_not();
}

TEST_F(MainLoopTest, AQuietNodeIsReportedInTheIntervalAndWaitsForOthersToo) {
  settings_.kubernetes.status_report_interval = minutes{1};  // not the default
  start_and_register();
  const auto before = server_.patches.size();
  clock_.run(settings_.kubernetes.status_report_interval * 2, [this] {
    fakes::let_detached_tasks_end();  // none is late by the test's clock, which is news
    return step();
  });
  EXPECT_GT(server_.patches.size(), before);
  EXPECT_LT(server_.patches.size(), before + 6) << "and not with each turn";
  const SteadyTime next = step();
  loop_->wait(next, {901, -1, 902});
  EXPECT_EQ(client_->waits.back(), next);
  EXPECT_THAT(client_->waited_fds, IsSupersetOf({901, 902}));
  EXPECT_THAT(client_->waited_fds, Not(Contains(-1)));
}

TEST_F(MainLoopTest, TheHostsShutdownIsSaidWithinItsLimit) {
  start_and_register();
  int abort_fd = -1;
  client_->responder = [&](const http::Request& request) {
    abort_fd = client_->abort_fd;
    return server_.answer(request);
  };
  loop_->send_last(true, milliseconds{500});
  const json said = conditions();
  const auto ready = std::find_if(said.begin(), said.end(),
                                  [](const json& one) { return one.value("type", "") == "Ready"; });
  ASSERT_NE(ready, said.end()) << said;
  EXPECT_EQ((*ready)["status"], "False");
  EXPECT_EQ((*ready)["reason"], "NodeShuttingDown");
  EXPECT_GE(abort_fd, 0) << "a call that hangs must end with the limit";
  EXPECT_EQ(client_->abort_fd, -1);
}

TEST_F(MainLoopTest, TheIdentityIsSavedOnceTheNodeIsRegistered) {
  identity_.metal3 = node::Metal3Facts{};
  identity_.metal3->uuid = "u1";
  server_.down = true;
  start();
  run(minutes{1});
  EXPECT_FALSE(tree_.exists("state/metal3.json"));
  server_.down = false;
  run(minutes{1});
  const auto saved = json::parse(tree_.content("state/metal3.json"), nullptr, false);
  ASSERT_TRUE(saved.is_object()) << tree_.content("state/metal3.json");
  EXPECT_THAT(saved.dump(), HasSubstr("\"u1\""));
  EXPECT_THAT(saved.dump(), HasSubstr("\"n1\""));
}

class MainLoopEndTest : public MainLoopTest {
 protected:
  // The Node is cordoned, as Cluster API does; slurmlet sees it and ends. Then the Node is deleted.
  void node_goes_with_its_machine() {
    start_and_register();
    server_.node["spec"]["unschedulable"] = true;
    server_.node["metadata"]["annotations"]["cluster.x-k8s.io/machine"] = "m1";
    run(settings_.kubernetes.status_report_interval * 2);  // the answer to a PATCH shows it
    server_.node = nullptr;
    ASSERT_TRUE(tree_.exists("state/node-end.json"));
  }
};

TEST_F(MainLoopEndTest, ANodeThatWentWithItsMachineStaysGoneOverARestartButForANewCredential) {
  node_goes_with_its_machine();
  start();
  run(minutes{10});
  EXPECT_FALSE(asked("POST", "/api/v1/nodes?"));
  EXPECT_TRUE(report().deleted_with_machine);
  EXPECT_THAT(report().block_reason, HasSubstr("Machine m1"));
  tree_.file("own.pem", new_credential());
  run(minutes{2});
  EXPECT_TRUE(report().registered);
}

TEST_F(MainLoopEndTest, AnotherMachinesEndIsForgotten) {
  node_goes_with_its_machine();
  identity_.policy.metal3_uuid = "another";
  start();
  EXPECT_FALSE(tree_.exists("state/node-end.json"));
  run(minutes{1});
  EXPECT_TRUE(report().registered);
}

}  // namespace
}  // namespace slurmlet::daemon
