// What uninstall takes back and what it leaves, as tables: one site with the host n1, its Node and
// its Machine m1, changed in one way each.

#include "operator/uninstall_rules.h"

#include <gmock/gmock.h>

#include <memory>

#include "fakes/fake_clock.h"
#include "node/vocabulary.h"
#include "operator/fake_site.h"
#include "operator/fake_slurm.h"

namespace slurmlet::op {
namespace uninstall_rules_test {

namespace names = node::vocabulary;
using ::testing::HasSubstr;

struct UninstallSeen {
  UninstallSeen() {
    slurm.nodes["n1"].address = "10.0.0.1";
    node = site_node("n1", "uid-1", "n1");
    machine = hooked_machine("m1", "n1");
    machine.hooked = false;
  }
  void drained(const char* reason) {
    slurm.nodes["n1"].flags.insert("DRAIN");
    slurm.nodes["n1"].reason = reason;
  }
  void down(const char* reason, std::set<std::string> flags) {
    slurm.nodes["n1"].base = "DOWN";
    slurm.nodes["n1"].flags = std::move(flags);
    slurm.nodes["n1"].reason = reason;
  }
  void noted(const char* state, const char* reason) {
    node.annotations[names::kDrain] = to_annotation({"n1", state, reason});
  }

  FakeSlurm slurm;
  kube::SiteNode node;
  kube::Machine machine;
  std::vector<MachineTemplate> templates;
  bool is_shared = false;
};

UninstallPlan plan_of(UninstallSeen& seen) {
  fakes::FakeClock clock;
  SiteNodes nodes{"c"};
  nodes.put(seen.node);
  DumpedNodes dump{{{}, {}, "c"},
                   std::make_unique<slurm::ScontrolDump>(
                       slurm::ClientSettings{}, std::make_unique<FakeSlurmRunner>(seen.slurm)),
                   [] { return 0.5; }};
  clock.run(std::chrono::seconds{1}, [&] { return dump.step(clock.now(), true, false); });
  const HostIndex hosts{dump.nodes()};
  const Machines machines{{key_of(seen.machine), seen.machine}};
  return plan_uninstall({{nodes, dump, hosts}, machines, seen.templates, seen.is_shared});
}

// Each removal in its order, "!" before what keeps all from beginning, "=" before what stays.
std::string planned(UninstallSeen& seen) {
  const auto plan = plan_of(seen);
  std::vector<std::string> out;
  for (const auto& line : plan.blockers) {
    out.push_back("!" + line.substr(0, line.find(" is being")));
  }
  for (const NodeChange& change : plan.slurm) {
    out.push_back(describe(change, {}));
  }
  for (const MachineTemplate& one : plan.templates) {
    out.push_back(one.kind + " " + one.name);
  }
  for (const kube::Machine& machine : plan.machines) {
    out.push_back("Machine " + machine.name);
  }
  for (const NodeAnnotations& node : plan.nodes) {
    out.push_back("Node " + node.node + " " + std::to_string(node.annotations.size()));
  }
  for (const auto& line : plan.kept) {
    out.push_back("=" + line.substr(0, std::min(line.find(" stays"), line.find(" keeps"))));
  }
  EXPECT_EQ(plan.is_done(), out.empty() || out.front().starts_with('=') ||
                                (out.size() == 1 && out.front().starts_with('!')));
  return join(out, "; ");
}

struct UninstallRow {
  const char* what;
  void (*change)(UninstallSeen&);
  const char* expected;
};

void check_rows(const std::vector<UninstallRow>& rows) {
  for (const UninstallRow& row : rows) {
    UninstallSeen seen;
    row.change(seen);
    EXPECT_EQ(planned(seen), row.expected) << row.what;
  }
}

TEST(UninstallRules, Drains) {
  check_rows({
      {"nothing was left", [](auto&) {}, ""},
      {"a cordon that has ended", [](auto& s) { s.drained("slurmlet: cordoned"); },
       R"(Slurm node n1 (Reason ""): state=undrain)"},
      {"still cordoned: the drain is its administrator's",
       [](auto& s) {
         s.drained("slurmlet: cordoned");
         s.node.unschedulable = true;
       },
       R"(Slurm node n1 (Reason ""): set Reason="cordoned in Kubernetes")"},
      {"an administrator's", [](auto& s) { s.drained("bad dimm"); }, ""},
      {"an administrator's that begins like it",
       [](auto& s) { s.drained("slurmlet: to be tested"); }, ""},
      {"an administrator's after ours had ended", [](auto& s) { s.drained("slurmlet: undrained"); },
       ""},
      {"of a bad condition: its host is still sick",
       [](auto& s) { s.drained("slurmlet: GPUHealthy: 1 of 8 GPUs missing [uid-1]"); },
       R"(Slurm node n1 (Reason ""): set Reason="GPUHealthy: 1 of 8 GPUs missing")"},
      {"of a Machine that has gone",
       [](auto& s) {
         s.drained("slurmlet: machine deleted [uid-1]");
         s.machine.node = "other";
       },
       R"(Slurm node n1 (Reason ""): state=undrain)"},
      {"of a Machine that is going",
       [](auto& s) {
         s.drained("slurmlet: machine deleted [uid-1]");
         s.machine.deleted_at = WallTime{};
       },
       "=Slurm node n1"},
      {"DOWN without slurmd",
       [](auto& s) {
         s.down("slurmlet: cordoned : Not responding", {"DRAIN", "NOT_RESPONDING"});
       },
       R"(Slurm node n1 (Reason ""): state=undrain Reason="Not responding")"},
      {"DOWN under our drain, slurmd is back",
       [](auto& s) { s.down("slurmlet: cordoned : Not responding", {"DRAIN"}); },
       R"(Slurm node n1 (Reason ""): state=resume)"},
      {"DOWN for a Reason of its own",
       [](auto& s) {
         s.down("Kill task failed", {"DRAIN"});
         s.noted("DOWN", "Kill task failed");
       },
       R"(Slurm node n1 (Reason ""): state=undrain; Node n1 1)"},
      {"FAIL for a Reason of its own",
       [](auto& s) {
         s.drained("flaky");
         s.noted("FAIL", "flaky");
       },
       R"(Slurm node n1 (Reason ""): state=fail Reason="flaky"; Node n1 1)"},
      {"the note of a drain that is another's by now",
       [](auto& s) {
         s.drained("bad dimm");
         s.noted("DOWN", "Kill task failed");
       },
       "Node n1 1"},
      {"a reboot is pending",
       [](auto& s) {
         s.drained("slurmlet: cordoned");
         s.slurm.nodes["n1"].flags.insert("REBOOT_REQUESTED");
       },
       "=Slurm node n1"},
      {"a Reason that outlived its drain",
       [](auto& s) { s.slurm.nodes["n1"].reason = "slurmlet: undrained"; },
       R"(Slurm node n1 (Reason ""): set Reason="undrained")"},
      {"a Reason of 0.1 that outlived its drain",
       [](auto& s) { s.slurm.nodes["n1"].reason = "slurmlet: cordoned [u], was: bad dimm"; },
       R"(Slurm node n1 (Reason ""): set Reason="bad dimm")"},
  });
}

TEST(UninstallRules, MachinesAndTheirTemplates) {
  check_rows({
      {"a Machine that lives", [](auto& s) { s.machine.hooked = true; }, "Machine m1"},
      {"its host sleeps", [](auto& s) { s.machine.sleeping = true; }, "=Machine ns/m1"},
      {"only a drain policy", [](auto& s) { s.machine.drain_policy = "now"; }, "Machine m1"},
      {"marked for a scale-down", [](auto& s) { s.machine.delete_mark = "slurmlet"; },
       "Machine m1"},
      {"marked by an administrator", [](auto& s) { s.machine.delete_mark = "yes"; }, ""},
      {"drained and marked for a scale-down: a drain ends first",
       [](auto& s) {
         s.drained("slurmlet: scale-down [uid-1]");
         s.machine.delete_mark = "slurmlet";
       },
       R"(Slurm node n1 (Reason ""): state=undrain; Machine m1)"},
      {"being deleted: the operator alone knows when its jobs have ended",
       [](auto& s) {
         s.machine.hooked = true;
         s.machine.deleted_at = WallTime{};
       },
       "!Machine ns/m1"},
      {"being deleted, of another Slurm cluster",
       [](auto& s) {
         s.machine.hooked = true;
         s.machine.deleted_at = WallTime{};
         s.node = site_node("n1", "uid-1", "n1", "other");
       },
       ""},
      {"another Slurm cluster's",
       [](auto& s) {
         s.machine.hooked = true;
         s.node = site_node("n1", "uid-1", "n1", "other");
       },
       ""},
      {"without a Node", [](auto& s) { (s.machine.hooked = true, s.machine.node = ""); },
       "Machine m1"},
      {"without a Node, beside another Slurm cluster's operator",
       [](auto& s) {
         s.machine.hooked = s.is_shared = true;
         s.machine.node = "";
       },
       "=Machine ns/m1"},
      {"without a Node, beside a template of another Cluster",
       [](auto& s) {
         s.machine.hooked = true;
         s.machine.node = "";
         s.templates.push_back({"MachineDeployment", "ns", "d", "u", "1", "other", "/d", {}});
       },
       "=Machine ns/m1"},
      {"its template comes first",
       [](auto& s) {
         s.machine.hooked = true;
         s.templates.push_back({"MachineDeployment", "ns", "d", "u", "1", "hpc", "/d", {"hook"}});
       },
       "MachineDeployment d; Machine m1"},
      {"a template without ours",
       [](auto& s) {
         s.templates.push_back({"MachineDeployment", "ns", "d", "u", "1", "hpc", "/d", {}});
       },
       ""},
      {"a template beside another Slurm cluster's operator",
       [](auto& s) {
         s.is_shared = true;
         s.templates.push_back({"MachineDeployment", "ns", "d", "u", "1", "hpc", "/d", {"hook"}});
       },
       "=MachineDeployment ns/d"},
  });
}

TEST(UninstallRules, Nodes) {
  check_rows({
      {"record, mark and note",
       [](auto& s) {
         for (const char* key : {names::kRecord, names::kDetach, names::kDrain}) {
           s.node.annotations[key] = "{}";
         }
       },
       "Node n1 3"},
      {"another Slurm cluster's",
       [](auto& s) {
         s.node = site_node("n1", "uid-1", "n1", "other");
         s.node.annotations[names::kRecord] = "{}";
       },
       ""},
      {"its Machine is going, and slurmd must not start again",
       [](auto& s) {
         s.node.annotations[names::kDetach] = names::kDetached;
         s.machine.deleted_at = WallTime{};
       },
       ""},
      {"it may be drained by the operator: that is ended first",
       [](auto& s) {
         s.node.annotations[names::kRecord] = "{}";
         s.drained("slurmlet: cordoned");
       },
       R"(Slurm node n1 (Reason ""): state=undrain; Node n1 1)"},
  });
}

TEST(UninstallRules, ABlockedMachineIsNamedWithTheWayOut) {
  UninstallSeen seen;
  seen.machine.hooked = true;
  seen.machine.deleted_at = WallTime{};
  const auto plan = plan_of(seen);
  ASSERT_EQ(plan.blockers.size(), 1U);
  EXPECT_THAT(plan.blockers.front(),
              HasSubstr("kubectl annotate machine m1 -n ns "
                        "pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet-"));
}

}  // namespace uninstall_rules_test
}  // namespace slurmlet::op
