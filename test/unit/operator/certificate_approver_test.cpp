#include "operator/certificate_approver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_api.h"
#include "fakes/fake_clock.h"
#include "tls/certificates.h"

namespace slurmlet::op {
namespace certificate_approver_test {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Type = kube::WatchEvent<kube::CertificateRequest>::Type;

const MachineNames kMachine{true, true, {"n1", "N1.site", "192.0.2.1", "2001:DB8:0::1"}};
const tls::CertificateSubject kNode{"system:node:n1", {"system:nodes"}, {}, {}};

tls::CertificateSubject serving_names(std::vector<std::string> dns, std::vector<std::string> ips) {
  return {"system:node:n1", {"system:nodes"}, std::move(dns), std::move(ips)};
}

kube::CertificateRequest request(const std::string& signer, const tls::CertificateSubject& subject,
                                 const std::string& name = "csr-1") {
  static const std::string kKey = *tls::generate_key();
  kube::CertificateRequest out;
  out.name = name;
  out.uid = "uid-of-" + name;
  out.signer_name = signer;
  out.request_pem = *tls::make_certificate_request(kKey, subject);
  const bool serving = signer == kube::kServingSigner;
  out.usages = {"digital signature", serving ? "server auth" : "client auth"};
  out.username = serving ? "system:node:n1" : "system:bootstrap:abcdef";
  out.groups = {serving ? "system:nodes" : "system:bootstrappers:slurm", "system:authenticated"};
  return out;
}

kube::CertificateRequest changed(kube::CertificateRequest from,
                                 const std::function<void(kube::CertificateRequest&)>& change) {
  change(from);
  return from;
}

TEST(CertificateRules, Table) {
  const auto serving = request(kube::kServingSigner, serving_names({"n1"}, {"192.0.2.1"}));
  const auto client = request(kube::kClientSigner, kNode);
  const struct {
    const char* what;
    kube::CertificateRequest request;
    bool has_machine, is_live;
    bool approved;
    const char* why;  // "" = not for the operator
  } table[] = {
      {"serving, the Machine's names", serving, true, true, true, ""},
      {"other forms of the same names",
       request(kube::kServingSigner, serving_names({"N1", "n1.SITE"}, {"2001:db8::1"})), true, true,
       true, ""},
      {"without a Machine", serving, false, true, false, "this node has no Machine"},
      {"an address of another machine",
       request(kube::kServingSigner, serving_names({"n1"}, {"192.0.2.1", "192.0.2.2"})), true, true,
       false, "192.0.2.2 is not a name or address of the node's Machine"},
      {"the API server's name",
       request(kube::kServingSigner, serving_names({"kubernetes.default"}, {})), true, true, false,
       "kubernetes.default is not a name"},
      {"without names", request(kube::kServingSigner, kNode), true, true, false,
       "neither a DNS name"},
      {"made by another node", changed(serving, [](auto& r) { r.username = "system:node:n2"; }),
       true, true, false, "not created by the node itself"},
      {"made by nobody of the nodes",
       changed(serving, [](auto& r) { r.groups = {"system:authenticated"}; }), true, true, false,
       "not created by the node itself"},
      {"of an administrators' group",
       request(kube::kServingSigner,
               {"system:node:n1", {"system:nodes", "system:masters"}, {"n1"}, {}}),
       true, true, false, "subject is not CN=system:node:NAME"},
      {"for a client, too", changed(serving, [](auto& r) { r.usages.push_back("client auth"); }),
       true, true, false, "also has the usage \"client auth\""},
      {"garbage", changed(serving, [](auto& r) { r.request_pem = "x"; }), true, true, false,
       "not a PEM certificate request"},
      {"decided already", changed(serving, [](auto& r) { r.denied = true; }), true, true, false,
       ""},
      {"another signer", changed(serving, [](auto& r) { r.signer_name = "site/x"; }), true, true,
       false, ""},
      {"client, a Machine and no Node", client, true, false, true, ""},
      {"client, the Node is Ready", client, true, true, false, "another machine uses the name"},
      {"client, no such Machine", client, false, false, false, "this node has no Machine"},
      {"client, with names", request(kube::kClientSigner, serving_names({"n1"}, {})), true, false,
       false, "which a client certificate must not have"},
      {"client, not of the group", changed(client, [](auto& r) { r.groups = {"x"}; }), true, false,
       false, ""},
      {"client for a server",
       changed(client,
               [](auto& r) {
                 r.usages = {"client auth", "server auth"};
               }),
       true, false, false, "also has the usage \"server auth\""},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    const auto ruling =
        rule_certificate(row.request, row.has_machine ? std::optional{kMachine} : std::nullopt,
                         row.is_live, "system:bootstrappers:slurm");
    EXPECT_EQ(ruling.approve, row.approved) << ruling.why;
    EXPECT_THAT(ruling.why, HasSubstr(row.why));
    EXPECT_EQ(ruling.why.empty(), *row.why == 0);
  }
  EXPECT_EQ(rule_certificate(client, kMachine, false, ""), CertificateRuling{});
  const MachineNames joining{true, false, kMachine.addresses};
  EXPECT_THAT(rule_certificate(serving, joining, false, "g").why, HasSubstr("no nodeRef yet"));
  const MachineNames other{false, true, kMachine.addresses};
  EXPECT_TRUE(rule_certificate(serving, other, false, "g").approve);
  EXPECT_THAT(rule_certificate(client, other, false, "system:bootstrappers:slurm").why,
              HasSubstr("does not have slurmlet's hook"));
}

class FakeApprovals final : public kube::ApprovalApi, public fakes::Scripted {
 public:
  Status approve(const kube::CertificateRequest& request, const std::string&) override {
    if (const auto error = begin("approve " + request.name)) {
      return *error;
    }
    then();
    return {};
  }
  std::function<void()> then = [] {};
};

class CertificateApproverTest : public ::testing::Test {
 protected:
  void put(const std::string& name, const tls::CertificateSubject& subject) {
    watch_.feed(Type::kAdded, {request(kube::kServingSigner, subject, name)});
  }
  void run(Duration time, bool certain = true) {
    clock_.run(time, [&] { return approver_.step(clock_.now(), certain); });
  }

  fakes::FakeClock clock_;
  fakes::FakeWatch<kube::CertificateRequest> watch_;
  FakeApprovals api_;
  fakes::FakeEventApi event_api_;
  sync::EventSink events_{event_api_, "head1", [] { return 0.5; }, "slurmlet-operator"};
  std::optional<MachineNames> machine_ = kMachine;
  fakes::FakeNodeApi nodes_;
  fakes::FakeLeaseApi leases_;
  bool leads_ = true;
  CertificateApprover approver_{{"system:bootstrappers:slurm", false},
                                {{{kube::kServingSigner, &watch_}},
                                 api_,
                                 events_,
                                 [this](const auto&) { return machine_; },
                                 nodes_,
                                 leases_,
                                 [this] { return leads_; }},
                                [] { return 0.5; }};
};

TEST_F(CertificateApproverTest, ApprovesOnce) {
  put("a", serving_names({"n1"}, {}));
  run(seconds{1}, false);
  EXPECT_THAT(api_.calls(), IsEmpty());
  run(minutes{5});
  EXPECT_THAT(api_.calls(), ElementsAre("approve a"));
  EXPECT_EQ(approver_.waiting(), 0U);
}

TEST_F(CertificateApproverTest, AFloodOfRequestsDelaysNoOtherRequester) {
  auto flood = request(kube::kServingSigner, kNode, "flood");
  flood.username = "system:node:n2";
  for (int i = 0; i < 11'000; ++i) {  // over kMostWaiting
    flood.name = "flood-" + std::to_string(i);
    watch_.feed(Type::kAdded, {flood});
  }
  put("proper", serving_names({"n1"}, {}));
  run(seconds{5});
  EXPECT_THAT(api_.calls(), ElementsAre("approve proper"));
  EXPECT_LE(approver_.waiting(), 10U);
}

TEST_F(CertificateApproverTest, ChecksTheLeadBeforeEachCall) {
  put("a", serving_names({"n1"}, {}));
  put("b", serving_names({"n1"}, {}));
  api_.then = [this] { leads_ = false; };
  approver_.step(clock_.now(), true);
  clock_.advance(minutes{1});
  approver_.step(clock_.now(), true);
  EXPECT_THAT(api_.calls(), ElementsAre("approve a"));
}

// Also if the Node is a kubelet's.
TEST_F(CertificateApproverTest, RejectsAClientCertificateForANodeInUse) {
  const auto submit = [this](const std::string& name) {
    watch_.feed(Type::kAdded, {request(kube::kClientSigner, kNode, name)});
    run(minutes{1});
  };
  nodes_.fail_always(Error{Code::kUnavailable, "no route"});
  submit("unknown");
  EXPECT_THAT(api_.calls(), IsEmpty()) << "no Machine yet";
  nodes_.fail_always(std::nullopt);
  run(minutes{2});
  EXPECT_THAT(api_.calls(), ElementsAre("approve unknown")) << "there is no such Node";
  node::DesiredNode kubelets;
  kubelets.name = "n1";
  kubelets.conditions = {{"Ready", "True", "KubeletReady", ""}};
  ASSERT_TRUE(nodes_.create(kubelets, clock_.now().wall));
  submit("another");
  EXPECT_THAT(api_.calls(), ElementsAre("approve unknown"));
}

// While Slurm is down a Node is not Ready, but slurmlet renews its Lease.
TEST_F(CertificateApproverTest, ANodeWhoseLeaseIsRenewedIsUp) {
  node::DesiredNode down;
  down.name = "n1";
  down.conditions = {{"Ready", "False", "SlurmdDown", ""}};
  ASSERT_TRUE(nodes_.create(down, clock_.now().wall));
  watch_.feed(Type::kAdded, {request(kube::kClientSigner, kNode, "early")});
  leases_.fail_always(Error{Code::kUnavailable, "no route"});
  run(minutes{5});
  leases_.fail_always(std::nullopt);
  for (int i = 0; i < 60; ++i) {
    leases_.put({.name = "n1"});
    run(seconds{30});
  }
  EXPECT_THAT(api_.calls(), IsEmpty());
  run(minutes{25});  // checked every ten minutes by now
  EXPECT_THAT(api_.calls(), ElementsAre("approve early")) << "not renewed any more";
}

// A reinstalled host joins again while its old Node exists.
TEST_F(CertificateApproverTest, ANodeWhoseLeaseIsNotRenewedIsReplacedAfterTwoMinutes) {
  for (const bool has_lease : {true, false}) {
    SCOPED_TRACE(has_lease);
    const std::string name = has_lease ? "with" : "without";
    node::DesiredNode gone;
    gone.name = "n1";
    gone.conditions = {{"Ready", "Unknown", "NodeStatusUnknown", ""}};
    if (has_lease) {
      ASSERT_TRUE(nodes_.create(gone, clock_.now().wall));
      leases_.put({.name = "n1"});
    } else {
      leases_.remove("n1");
    }
    watch_.feed(Type::kAdded, {request(kube::kClientSigner, kNode, name)});
    const auto before = api_.calls().size();
    run(kLeaseWatched - seconds{1});
    EXPECT_EQ(api_.calls().size(), before);
    EXPECT_THAT(event_api_.events(), IsEmpty());
    run(seconds{3});
    EXPECT_EQ(api_.calls().size(), before + 1);
    run(minutes{1});
    event_api_.expire_all();
  }
}

// slurmlet renews at a quarter of the duration.
TEST_F(CertificateApproverTest, ALeaseThatLastsLongIsWatchedLonger) {
  node::DesiredNode down;
  down.name = "n1";
  ASSERT_TRUE(nodes_.create(down, clock_.now().wall));
  leases_.put({.name = "n1", .duration_seconds = 3600});
  watch_.feed(Type::kAdded, {request(kube::kClientSigner, kNode, "long")});
  run(minutes{14});
  leases_.put({.name = "n1", .duration_seconds = 3600});
  run(minutes{175});
  EXPECT_THAT(api_.calls(), IsEmpty());
  run(minutes{20});
  EXPECT_THAT(api_.calls(), ElementsAre("approve long"));
}

// Requesters share a bootstrap token.
TEST_F(CertificateApproverTest, RejectedRequestsDisplaceNoPendingOnes) {
  leases_.put({.name = "n1"});
  auto proper = request(kube::kClientSigner, kNode, "proper");
  watch_.feed(Type::kAdded, {proper});
  run(seconds{5});
  auto junk = request(kube::kClientSigner, {"nobody", {"system:nodes"}, {}, {}}, "junk");
  for (int i = 0; i < 3000; ++i) {
    junk.name = "junk-" + std::to_string(i);
    junk.uid = junk.name;
    watch_.feed(Type::kAdded, {junk});
    if (i % 100 == 0) {
      run(seconds{1});
    }
  }
  run(minutes{3});
  EXPECT_THAT(api_.calls(), ElementsAre("approve proper"));
}

// Each check takes up to two blocking calls.
TEST_F(CertificateApproverTest, ChecksFewNodesPerStep) {
  for (int i = 0; i < 50; ++i) {
    const std::string name = "n" + std::to_string(i);
    leases_.put({.name = name});
    watch_.feed(Type::kAdded, {request(kube::kClientSigner,
                                       {"system:node:" + name, {"system:nodes"}, {}, {}}, name)});
  }
  for (int step = 0; step < 20; ++step) {
    nodes_.clear_calls();
    approver_.step(clock_.now(), true);
    EXPECT_LE(nodes_.calls().size(), static_cast<std::size_t>(sync::kCallsPerStep));
  }
}

TEST_F(CertificateApproverTest, RetriesUntilTheMachineHasItsAddresses) {
  machine_.reset();
  put("a", serving_names({"n1"}, {}));
  run(seconds{30});
  EXPECT_THAT(api_.calls(), IsEmpty());
  machine_ = kMachine;
  run(minutes{1});
  EXPECT_THAT(api_.calls(), ElementsAre("approve a"));
}

TEST_F(CertificateApproverTest, RejectedRequestsBackOff) {
  int checks = 0;
  CertificateApprover approver{{},
                               {{{kube::kServingSigner, &watch_}},
                                api_,
                                events_,
                                [&](const auto&) {
                                  ++checks;
                                  return std::optional<MachineNames>{};
                                },
                                nodes_,
                                leases_,
                                [] { return true; }},
                               [] { return 0.5; }};
  put("a", serving_names({"n1"}, {}));
  clock_.run(std::chrono::hours{1}, [&] { return approver.step(clock_.now(), true); });
  EXPECT_GE(checks, 5);
  EXPECT_LE(checks, 20);
}

TEST_F(CertificateApproverTest, ARejectedRequestDelaysNoOther) {
  api_.fail_calls("approve a", Error{Code::kDenied, "403"});
  put("a", serving_names({"n1"}, {}));
  put("b", serving_names({"n1"}, {}));
  run(seconds{3});
  EXPECT_THAT(api_.calls(), ElementsAre("approve a", "approve b"));
}

TEST_F(CertificateApproverTest, DecidesFewRequestsPerStep) {
  for (int i = 0; i < 9; ++i) {
    put("csr-" + std::to_string(i), serving_names({"n1"}, {}));
  }
  (void)approver_.step(clock_.now(), true);
  EXPECT_LE(api_.calls().size(), 5U);
  run(seconds{2});
  EXPECT_EQ(api_.calls().size(), 9U);
}

TEST_F(CertificateApproverTest, ForgetsDeletedAndDecidedRequests) {
  machine_.reset();
  put("a", serving_names({"n1"}, {}));
  put("b", serving_names({"n1"}, {}));
  run(seconds{1});
  EXPECT_EQ(approver_.waiting(), 2U);
  watch_.feed(Type::kReplaced, {request(kube::kServingSigner, serving_names({"n1"}, {}), "b")});
  run(seconds{1});
  EXPECT_EQ(approver_.waiting(), 1U);
  auto decided = request(kube::kServingSigner, serving_names({"n1"}, {}), "b");
  decided.denied = true;
  watch_.feed(Type::kModified, {decided});
  run(seconds{1});
  EXPECT_EQ(approver_.waiting(), 0U);
}

}  // namespace certificate_approver_test
}  // namespace slurmlet::op
