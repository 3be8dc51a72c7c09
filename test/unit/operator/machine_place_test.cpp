// Which Slurm nodes are a Machine's, as a table: what is not certain is drained and released by
// nobody.

#include "operator/machines/machine_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/fake_clock.h"
#include "node/vocabulary.h"
#include "operator/fake_site.h"
#include "operator/fake_slurm.h"

namespace slurmlet::op {
namespace machine_place_test {

namespace names = node::vocabulary;
using ::testing::HasSubstr;

// The host n1 with its Machine m1, Node and Slurm node, and another, n9.
struct Site {
  Site() {
    for (const char* name : {"n1", "n9"}) {
      slurm.nodes[name].address = std::string{"10.0.0."} + (name + 1);
      nodes[name] = {name,  "uid", {{names::kSlurmNode, name}, {names::kSlurmCluster, "c"}},
                     false, false, ""};
    }
  }
  void report(const char* node, const char* slurm_node) {
    nodes.at(node).annotations[names::kSlurmNode] = slurm_node;
  }
  void without_node() {
    nodes.erase("n1");
    machine.node = "";
  }
  void unknown_to_slurm() {
    without_node();
    slurm.nodes.erase("n1");
  }

  kube::Machine machine = hooked_machine("m1", "n1");
  std::map<std::string, kube::SiteNode> nodes;
  FakeSlurm slurm;
  std::size_t claims = 1;
};

struct Expected {
  const char* slurm;
  bool clear = true;
  bool elsewhere = false, never_provisioned = false;
};

struct Found {
  MachinePlace place;  // without Slurm nodes, which die with the dump
  std::string slurm;
};

Found find(Site& site) {
  fakes::FakeClock clock;
  SiteNodes nodes{"c"};
  for (const auto& [name, node] : site.nodes) {
    nodes.put(node);
  }
  DumpedNodes dump{{{}, {}, "c"},
                   std::make_unique<slurm::ScontrolDump>(
                       slurm::ClientSettings{}, std::make_unique<FakeSlurmRunner>(site.slurm)),
                   [] { return 0.5; }};
  clock.run(std::chrono::seconds{1}, [&] { return dump.step(clock.now(), true, false); });
  const HostIndex hosts{dump.nodes()};
  Found out{find_place(site.machine, {nodes, dump, hosts}, site.claims), ""};
  for (const SlurmNode* node : std::exchange(out.place.slurm, {})) {
    out.slurm += (out.slurm.empty() ? "" : ",") + node->name;
  }
  return out;
}

TEST(MachinePlaceTest, Table) {
  const struct {
    const char* what;
    void (*change)(Site&);
    Expected expected;
  } rows[] = {
      {"a Node of its own", [](Site&) {}, {"n1"}},
      {"its daemon has not reported a Slurm node, and names are short in slurm.conf",
       [](Site& s) {
         s.nodes["n1.site"] = s.nodes.at("n1");
         s.nodes["n1.site"].name = s.machine.node = "n1.site";
         s.nodes["n1.site"].annotations.erase(names::kSlurmNode);
         s.nodes.erase("n1");
       },
       {"n1"}},
      {"two Slurm nodes of one host",
       [](Site& s) { s.slurm.nodes["n1b"].host = "n1"; },
       {"n1,n1b"}},
      {"another record cannot be read, perhaps of its host",
       [](Site& s) { s.slurm.nodes["n9"].base = "DWN*"; },
       {"n1", false}},
      {"two Slurm nodes of one address",
       [](Site& s) {
         s.slurm.nodes["n1b"].address = "10.0.0.1";
         s.machine.addresses = {"10.0.0.1"};
       },
       {"n1,n1b"}},
      {"its Node was deleted by hand", [](Site& s) { s.nodes.erase("n1"); }, {"n1"}},
      {"its Node was deleted by hand, and Slurm has another name",
       [](Site& s) {
         s.nodes.erase("n1");
         s.slurm.nodes.erase("n1");
         s.slurm.nodes["mc001"];
       },
       {""}},
      {"no Node, the name of its host",
       [](Site& s) {
         s.without_node();
         s.machine.addresses = {"N1.site"};
       },
       {"n1"}},
      {"no Node, the address of its host",
       [](Site& s) {
         s.without_node();
         s.machine.provider_id = "metal3://ns/host/m1";
         s.machine.addresses = {"10.0.0.1"};
       },
       {"n1"}},
      {"hidden, removed from slurm.conf, or another cluster's",
       [](Site& s) { s.slurm.nodes.erase("n1"); },
       {""}},
      {"no nodeRef yet, and one Node has its providerID",
       [](Site& s) {
         s.machine.node = "";
         s.machine.provider_id = s.nodes.at("n1").provider_id = "metal3://x";
       },
       {"n1"}},
      {"no nodeRef yet, and two Nodes have its providerID",
       [](Site& s) {
         s.machine.node = "";
         s.machine.provider_id = s.nodes.at("n1").provider_id = "metal3://x";
         s.nodes.at("n9").provider_id = "metal3://x";
       },
       {"", false}},
      {"two Machines have its Node", [](Site& s) { s.claims = 2; }, {"n1", false}},
      {"its Node has another Machine's providerID",
       [](Site& s) {
         s.machine.provider_id = "metal3://1";
         s.nodes.at("n1").provider_id = "metal3://2";
       },
       {"n1", false}},
      {"two Nodes of that name claim its Slurm node",
       [](Site& s) { s.nodes["n1.site"] = site_node("n1.site", "uid", "n1"); },
       {"n1", false}},
      {"its Node claims another's Slurm node",
       [](Site& s) { s.report("n1", "n9"); },
       {"n1", false}},
      {"its Node claims a Slurm node that does not exist",
       [](Site& s) { s.report("n1", "no-such"); },
       {"n1"}},
      {"another Node claims its Slurm node", [](Site& s) { s.report("n9", "n1"); }, {"n1"}},
      {"named like the Node of another",
       [](Site& s) {
         s.machine.node = "";
         s.machine.name = "n1";
       },
       {"", false}},
      {"with the host name of another's Node",
       [](Site& s) {
         s.machine.node = "";
         s.machine.provider_id = "metal3://a/b/2";
         s.machine.addresses = {"N1.site"};
       },
       {"n1", false}},
      {"its record cannot be parsed",
       [](Site& s) { s.slurm.nodes.at("n9").reason = "x\nNodeName=n1 Arch=x"; },
       {"", false}},
      {"of another Slurm cluster",
       [](Site& s) { s.nodes.at("n1").annotations[names::kSlurmCluster] = "another"; },
       {"", true, true}},
      {"of an unknown Slurm cluster",
       [](Site& s) { s.nodes.at("n1").annotations.erase(names::kSlurmCluster); },
       {"n1", false}},
      {"never provisioned", [](Site& s) { s.unknown_to_slurm(); }, {"", true, false, true}},
      // A slurmd may run there under an unknown name.
      {"provisioned",
       [](Site& s) {
         s.unknown_to_slurm();
         s.machine.provisioned = true;
       },
       {""}},
      {"with a providerID",
       [](Site& s) {
         s.unknown_to_slurm();
         s.machine.provider_id = "metal3://ns/host/other-form";
       },
       {""}},
      {"with an address",
       [](Site& s) {
         s.unknown_to_slurm();
         s.machine.addresses = {"10.0.0.7"};
       },
       {""}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    Site site;
    row.change(site);
    const Found found = find(site);
    EXPECT_EQ(found.slurm, row.expected.slurm);
    EXPECT_EQ(found.place.unclear.empty(), row.expected.clear) << found.place.unclear;
    EXPECT_EQ(found.place.is_elsewhere, row.expected.elsewhere);
    EXPECT_EQ(found.place.never_provisioned, row.expected.never_provisioned);
  }
}

// The Reason of its drain must be another than that of the host's next Machine.
TEST(MachinePlaceTest, WithoutANodeItIsKnownByItsOwnUid) {
  Site site;
  site.nodes.erase("n1");
  const MachinePlace place = find(site).place;
  EXPECT_FALSE(place.has_node);
  EXPECT_EQ(place.node.uid, "m-m1");
}

TEST(MachinePlaceTest, MachinesOfTwoClustersMayBeAnothers) {
  Machines machines;
  machines["ns/m1"] = Site{}.machine;
  machines["ns/m2"] = machines["ns/m1"];
  EXPECT_EQ(doubt_about(machines), "");
  machines["ns/m2"].cluster = "another";
  EXPECT_THAT(doubt_about(machines), HasSubstr("machineCluster"));
  machines["ns/m2"].hooked = false;
  EXPECT_EQ(doubt_about(machines), "");
}

}  // namespace machine_place_test
}  // namespace slurmlet::op
