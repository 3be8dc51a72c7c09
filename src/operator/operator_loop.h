#pragma once

// The operator's one loop: watch the Nodes, dump slurmctld, and while we lead
//   - publish each Node's record (rules/record_rules.h),
//   - drain cordoned nodes, undrain uncordoned ones (nodes/cordon_sync.h),
//   - drain nodes with a bad condition (nodes/health_sync.h),
//   - show which hosts sleep (machines/sleeping_machines.h),
//   - release deleted Machines once their jobs have ended (machines/machine_sync.h),
//   - scale MachineDeployments by the queue (machines/scaler.h),
//   - delete Nodes whose Machine is gone (nodes/leftover_nodes.h),
//   - approve certificate requests of nodes (certificate_approver.h).
// All state is in Slurm and on the Nodes, so it may be killed at any moment. A standby watches
// nothing; a new leader lists Nodes and Machines and dumps Slurm.
//
// A step object; clock and I/O are injected. Not thread-safe.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/delay.h"
#include "kube/api.h"
#include "operator/certificate_approver.h"
#include "operator/leader.h"
#include "operator/machines/machine_sync.h"
#include "operator/machines/scaler.h"
#include "operator/machines/sleeping_machines.h"
#include "operator/nodes/cordon_sync.h"
#include "operator/nodes/health_sync.h"
#include "operator/nodes/leftover_nodes.h"
#include "operator/nodes/node_reports.h"
#include "operator/nodes/record_publisher.h"
#include "operator/site/dumped_nodes.h"
#include "operator/site/node_changes.h"
#include "operator/site/site_nodes.h"
#include "sync/event_sink.h"

namespace slurmlet::op {

struct OperatorSettings {
  DumpedNodes::Settings dump;
  slurm::SlurmIdentity self;  // user of Slurm's commands
  bool elect_leader = true;
  bool dry_run = false;         // reports its actions, and takes none
  DrainPolicy policy;           // for Machines without one
  bool all_machines = true;     // of every Cluster
  std::string bootstrap_group;  // may request client certificates; "" = no group
  HealthPolicy health;
  int scale_up_per_minute = 10;
};

// Must outlive the loop.
struct OperatorContext {
  const Clock& clock;
  kube::Watch<kube::SiteNode>& nodes;
  kube::SiteApi& site;
  Leader& leader;
  sync::EventSink& events;
  kube::Watch<kube::Machine>& machines;
  kube::MachineApi& machine_api;
  sync::EventSink& machine_events;  // on the Machines' server
  // That server's time; nothing = not known yet.
  std::function<std::optional<WallTime>(SteadyTime)> server_time;
  kube::LeaseApi& node_leases;
  kube::NodeApi& node_api;
  RunnerFactory runner;
  // For certificate requests; null = they are left to others.
  std::vector<CertificateWatch> certificates = {};
  kube::ApprovalApi* approvals = nullptr;
  kube::ScaleApi* scale = nullptr;  // null = MachineDeployments are not scaled
};

// For metrics and health.
struct OperatorStatus {
  bool leads = false;
  bool nodes_known = false;
  std::size_t nodes = 0, slurm_nodes = 0, records_waiting = 0;
  std::uint64_t dumps = 0, dumps_unchanged = 0, dump_failures = 0, record_writes = 0,
                record_failures = 0;
  NodeReports::Counters changes;
  Duration dump_took{};
  std::optional<WallTime> dumped_at;
  std::string dump_problem, api_problem, record_problem;
  MachineStatus machines;
  const ScaleStatus* scale = nullptr;  // until the next step; null: it does not scale
  HealthStatus health;
  std::size_t machines_sleeping = 0;
  std::uint64_t nodes_deleted = 0, node_deletion_failures = 0;
  std::uint64_t certificates_approved = 0, certificate_failures = 0;
  std::size_t certificates_waiting = 0;
};

class OperatorLoop {
 public:
  OperatorLoop(OperatorSettings settings, OperatorContext context,
               std::unique_ptr<slurm::DumpSource> dump_source, const Random& random);

  SteadyTime step();
  std::vector<int> wake_fds() const;
  OperatorStatus status() const;

 private:
  bool acts() const;
  void take_lead(bool leads);
  void evaluate(const KubeNode& node, Now now);
  void evaluate_all(Now now);
  void evaluate_record(const KubeNode& node, const SlurmNode* slurm, Now now);
  bool confirm(const NodeChange& change);
  SteadyTime step_changes(Now now, std::vector<NodeChange> changes, bool is_new_dump);
  SteadyTime step_api(Now now);
  const SlurmNode* slurm_node_of(const KubeNode& node) const;
  RecordPublisher::Text record_text(const std::string& node) const;
  void record_written(const std::string& node);

  OperatorSettings settings_;
  OperatorContext context_;
  DumpedNodes dump_;
  SiteNodes nodes_;
  NodeReports reports_;
  NodeChanges changes_;
  RecordPublisher publisher_;
  MachineSync machines_;
  CordonSync cordons_;
  HealthSync health_;
  std::optional<Scaler> scaler_;
  SleepingMachines sleeping_;
  LeftoverNodes leftovers_;
  std::optional<CertificateApprover> certificates_;
  bool led_ = false;
};

}  // namespace slurmlet::op
