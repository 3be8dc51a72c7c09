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
  void join(const std::string& name) {
    watch_.feed(Type::kAdded, {request(kube::kClientSigner, kNode, name)});
  }
  void put_node(const char* ready) {
    node::ObservedNode node;
    node.name = "n1";
    node.conditions = {{{"Ready", ready, "R", ""}, ""}};
    nodes_.put(node);
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
  int machine_queries_ = 0;
  fakes::FakeNodeApi nodes_;
  fakes::FakeLeaseApi leases_;
  bool leads_ = true;
  CertificateApprover approver_{{"system:bootstrappers:slurm", false},
                                {{{kube::kServingSigner, &watch_}},
                                 api_,
                                 events_,
                                 [this](const auto&) {
                                   ++machine_queries_;
                                   return machine_;
                                 },
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
  for (int i = 0; i < 11'000; ++i) {  // more than are kept
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
  nodes_.fail_always(Error{Code::kUnavailable, "no route"});
  join("unknown");
  run(minutes{1});
  EXPECT_THAT(api_.calls(), IsEmpty()) << "it may be in use";
  nodes_.fail_always(std::nullopt);
  run(minutes{2});
  EXPECT_THAT(api_.calls(), ElementsAre("approve unknown")) << "there is no such Node";
  put_node("True");
  join("another");
  run(minutes{1});
  EXPECT_THAT(api_.calls(), ElementsAre("approve unknown"));
}

// While Slurm is down a Node is not Ready, but slurmlet renews its Lease.
TEST_F(CertificateApproverTest, ANodeWhoseLeaseIsRenewedIsUp) {
  put_node("False");
  join("early");
  leases_.fail_always(Error{Code::kUnavailable, "no route"});
  run(minutes{5});
  leases_.fail_always(std::nullopt);
  for (int i = 0; i < 60; ++i) {
    leases_.put({.name = "n1"});
    run(seconds{30});
  }
  EXPECT_THAT(api_.calls(), IsEmpty());
  run(minutes{25});
  EXPECT_THAT(api_.calls(), ElementsAre("approve early")) << "not renewed any more";
}

// A reinstalled host joins again while its old Node exists. slurmlet renews at a quarter of the
// Lease's duration, so a long one is watched longer.
TEST_F(CertificateApproverTest, ANodeWhoseLeaseIsNotRenewedIsReplaced) {
  const struct {
    const char* name;
    std::optional<int> lease;  // its duration in seconds
    Duration kept, replaced;
  } rows[] = {{"without", {}, kLeaseWatched - seconds{1}, kLeaseWatched + seconds{2}},
              {"with", 40, kLeaseWatched - seconds{1}, kLeaseWatched + seconds{2}},
              {"long", 3600, minutes{14}, minutes{200}}};
  put_node("Unknown");
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    if (row.lease) {
      leases_.put({.name = "n1", .duration_seconds = *row.lease});
    }
    const auto before = api_.calls().size();
    join(row.name);
    run(row.kept);
    EXPECT_EQ(api_.calls().size(), before);
    run(row.replaced - row.kept);
    EXPECT_EQ(api_.calls().size(), before + 1);
  }
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

TEST_F(CertificateApproverTest, RetriesUntilTheMachineHasItsAddresses) {
  machine_.reset();
  for (const char* name : {"a", "deleted", "decided"}) {
    put(name, serving_names({"n1"}, {}));
  }
  run(seconds{30});
  EXPECT_EQ(approver_.waiting(), 3U);
  const auto left = request(kube::kServingSigner, serving_names({"n1"}, {}), "a");
  auto decided = request(kube::kServingSigner, serving_names({"n1"}, {}), "decided");
  watch_.feed(Type::kReplaced, {left, decided});
  decided.denied = true;
  watch_.feed(Type::kModified, {decided});
  run(seconds{1});
  EXPECT_EQ(approver_.waiting(), 1U);
  EXPECT_THAT(api_.calls(), IsEmpty());
  machine_ = kMachine;
  run(minutes{1});
  EXPECT_THAT(api_.calls(), ElementsAre("approve a"));
}

TEST_F(CertificateApproverTest, RejectedRequestsBackOff) {
  machine_.reset();
  put("a", serving_names({"n1"}, {}));
  run(std::chrono::hours{1});
  EXPECT_GE(machine_queries_, 5);
  EXPECT_LE(machine_queries_, 20);
}

// Each check takes up to two blocking calls, and each approval one.
TEST_F(CertificateApproverTest, MakesFewCallsPerStep) {
  api_.fail_calls("approve n7", Error{Code::kDenied, "403"});
  for (int i = 0; i < 50; ++i) {
    const std::string name = "n" + std::to_string(i);
    watch_.feed(Type::kAdded, {request(kube::kClientSigner,
                                       {"system:node:" + name, {"system:nodes"}, {}, {}}, name)});
  }
  for (int step = 0; step < 20; ++step) {
    nodes_.clear_calls();
    api_.clear_calls();
    approver_.step(clock_.now(), true);
    EXPECT_LE(nodes_.calls().size(), static_cast<std::size_t>(sync::kCallsPerStep));
    EXPECT_LE(api_.calls().size(), static_cast<std::size_t>(sync::kCallsPerStep));
  }
  run(minutes{5});
  EXPECT_EQ(approver_.waiting(), 1U) << "one that fails delays no other";
}

}  // namespace certificate_approver_test
}  // namespace slurmlet::op
