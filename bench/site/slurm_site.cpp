#include "slurm_site.h"

#include <fmt/format.h>

#include "base/delay.h"
#include "local_facts.h"

namespace slurmlet::site {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Duration kClientTakes = milliseconds{30};
constexpr Duration kEndedAsleep = milliseconds{100};
constexpr Duration kClientPatience = milliseconds{9500};
constexpr int kClientTries = 10;    // a second apart, while slurmctld refuses
constexpr std::uint32_t kRpcs = 2;  // of one query
// slurmlet-operator's pace at 10,000 nodes.
constexpr Duration kDumpInterval = seconds{30};
constexpr Duration kRefresh = std::chrono::minutes{10};
constexpr const char* kCluster = "alps";

node::SlurmNodeRecord record_of(const SlurmNode& node) {
  node::SlurmNodeRecord record;
  record.name = node.name;
  record.state = node.state;
  record.cpus = kNodeCpus;
  record.real_memory_mib = 500000;
  record.version = "23.11.4";
  record.partitions = {"batch"};
  record.cluster = kCluster;
  return record;
}

class Client final : public slurm::NodeSource {
 public:
  Client(SlurmSite& site, const SlurmNode& node) : site_(site), node_(node) {}

  std::optional<slurm::QueryFailure> query(const std::string&, Now) override {
    run_ = site_.run_client(1);
    return std::nullopt;
  }
  bool busy() const override { return run_.has_value(); }
  std::optional<slurm::QueryResult> poll(Now now) override {
    if (!run_ || now.steady < run_->ends) {
      return std::nullopt;
    }
    slurm::QueryResult result;
    if (run_->answered) {
      result.record = record_of(node_);
    } else {
      result.failure = slurm::QueryFailure{node::SlurmFailure::kControllerUnreachable,
                                           "scontrol was waiting to connect again"};
    }
    run_.reset();
    return result;
  }
  SteadyTime wake_at() const override { return run_ ? run_->ends : kNever; }
  std::vector<int> wake_fds() const override { return {}; }
  void set_place(const slurm::ClusterPlace& /*place*/) override {}

 private:
  SlurmSite& site_;
  const SlurmNode& node_;
  std::optional<SlurmSite::Outcome> run_;
};

// The lines of a dump.
std::string text_of(const SlurmNode& node) {
  return fmt::format(
      "NodeName={} Arch=x86_64 CPUTot={} RealMemory=500000 State={} Partitions=batch "
      "Version=23.11.4\n",
      node.name, kNodeCpus, node.state.raw());
}

}  // namespace

SlurmSite::Outcome SlurmSite::run_client(int tries) {
  const SteadyTime begin = world_.now().steady;
  for (int attempt = 0; attempt < tries; ++attempt) {
    const SteadyTime at = begin + attempt * seconds{1};
    const Outage* outage = outage_at(outages_, at);
    if (outage == nullptr) {
      world_.count_at(at, Count::kSlurmRpc, kRpcs);
      return {at + kClientTakes, true};
    }
    world_.count_at(at, Count::kSlurmRefused);
    if (outage->hangs) {
      return {begin + kClientPatience, false};
    }
  }
  return {begin + (tries == 1 ? kEndedAsleep : kClientPatience), false};
}

void SlurmSite::publish(const std::vector<SlurmNode*>& nodes) {
  published_ = nodes;
  dump();
}

void SlurmSite::dump() {
  if (published_.empty()) {
    return;
  }
  const WallTime began = world_.now().wall;
  const Outcome outcome = run_client(kClientTries);
  slurm::PublishedRecord record;
  record.cluster = kCluster;
  record.interval = kDumpInterval;
  record.refresh = kRefresh;
  if (outcome.answered) {
    world_.count_at(outcome.ends, Count::kSlurmDump, kRpcs);
    dumped_at_ = std::chrono::floor<seconds>(began);
  } else {
    record.failure = "ControllerUnreachable: slurmctld does not answer";
    record.failed_at = std::chrono::floor<seconds>(began);
  }
  record.dumped_at = dumped_at_;
  for (SlurmNode* node : published_) {
    if (outcome.answered) {
      node->dumped = text_of(*node);
    }
    // As the operator writes: what has changed at once, the rest spread over the refresh.
    const Duration own = SitePlace{node->name}.until_own_time(kRefresh, "refresh:", began);
    const bool changed = node->dumped != node->written;
    if (changed || own < kDumpInterval) {
      record.text = node->written = node->dumped;
      const auto write = [this, node, text = slurm::to_annotation(record)] {
        node->record = text;
        world_.count(Count::kRecordWritten);
        node->tell();
      };
      world_.at(world_.now().steady + (changed ? Duration::zero() : own), write);
    }
  }
  world_.at(world_.now().steady + kDumpInterval, [this] { dump(); });
}

slurm::PollSources make_sources(SlurmSite& site, const SlurmNode& node, bool has_operator) {
  slurm::PollSources sources{{}, std::make_unique<Client>(site, node)};
  if (has_operator) {
    sources.record.emplace(false);
  }
  return sources;
}

}  // namespace slurmlet::site
