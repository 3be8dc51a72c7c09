#include "operator/site/dumped_nodes.h"

#include <algorithm>
#include <utility>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/record_text.h"
#include "slurm/sources/published_record.h"

namespace slurmlet::op {
namespace {

constexpr Duration kSlack = std::chrono::seconds{5};
// slurmctld does not report nodes as changed when their partition is deleted, so a whole dump is
// due that often.
constexpr Duration kWholeEvery = std::chrono::minutes{5};
// Between dumps that a change waits for; slow dumps are as far apart as they take.
constexpr Duration kDumpGap = std::chrono::seconds{1};

}  // namespace

std::optional<SlurmNode> read_slurm_node(const std::string& text) {
  auto record = slurm::read_record_text(text);
  if (!record) {
    return std::nullopt;
  }
  return SlurmNode{
      std::move(record->name),
      std::move(record->hostname),
      std::move(record->state),
      std::move(record->reason),
      text,
      std::move(record->address),
      record->partitions_known ? std::move(record->partitions) : std::vector<std::string>{}};
}

std::string foreign_cluster(const std::string& own, const std::string& answered) {
  if (answered.empty() || own.empty() || to_lower(answered) == to_lower(own)) {
    return "";
  }
  return "slurmrestd answers for cluster " + plain_text(answered) +
         ", but ClusterName in slurm.conf is " + own;
}

DumpedNodes::DumpedNodes(Settings settings, std::unique_ptr<slurm::DumpSource> source,
                         Random random)
    : settings_(std::move(settings)),
      source_(std::move(source)),
      report_{.cluster = settings_.cluster,
              .dumped_at = {},
              .interval = settings_.interval.value_or(site_pace(0).dump)},
      backoff_(report_.interval / 2, report_.interval, report_.interval * 10, std::move(random)) {}

// Parses only changed records, which are few of ten thousand.
void DumpedNodes::take(slurm::DumpRecords records) {
  quiet_ = true;
  before_.clear();
  misread_.clear();
  SlurmNodes nodes;
  for (auto& [name, record] : records) {
    auto known = nodes_.extract(name);
    if (known && known.mapped().text == record) {
      nodes.insert(nodes.end(), std::move(known));
      continue;
    }
    quiet_ = false;
    if (auto node = read_slurm_node(record); node && node->name == name) {
      nodes.emplace_hint(nodes.end(), name, *std::move(node));
    } else {
      misread_.insert(name);
    }
    if (known) {
      before_.insert(std::move(known));
    }
  }
  quiet_ = quiet_ && nodes_.empty();  // no node was deleted
  nodes_ = std::move(nodes);
}

void DumpedNodes::forget() {
  nodes_.clear();
  before_.clear();
  misread_.clear();
  report_.dumped_at.reset();
  report_.failed_at.reset();
  report_.failure.clear();
  due_ = soonest_ = {};
  quiet_ = false;
}

const SlurmNode* DumpedNodes::find(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::string DumpedNodes::problem(WallTime now) const {
  if (!report_.failure.empty()) {
    return "slurmctld did not report its nodes: " + report_.failure;
  }
  const Duration longest = report_.interval + 2 * settings_.client.timeout + kSlack;
  const bool is_old =
      !report_.dumped_at || now - *report_.dumped_at > longest || *report_.dumped_at - now > kSlack;
  return is_old ? "there is no recent answer of slurmctld" : "";
}

// Where jobs come and go each dump differs, so the query "has anything changed" is skipped.
bool DumpedNodes::may_be_unchanged(SteadyTime now) const {
  return quiet_ && report_.failure.empty() && now - whole_at_ < kWholeEvery;
}

void DumpedNodes::finish(Now now, slurm::DumpSource::Answer answer) {
  if (answer.records) {
    take(*std::move(answer.records));
    whole_at_ = started_;
  } else if (!report_.dumped_at) {
    return;  // unchanged from what forget() has discarded
  } else {
    before_.clear();
    ++counters_.unchanged;
  }
  ++counters_.dumps;
  counters_.took = answer.took;
  counters_.began = started_;
  report_.dumped_at = std::chrono::time_point_cast<std::chrono::seconds>(began_);
  report_.failure.clear();
  report_.failed_at.reset();
  const SitePace pace = site_pace(nodes_.size());
  report_.interval = settings_.interval.value_or(pace.dump);
  report_.refresh = pace.refresh;
  backoff_.reset();
  // A change just after slurmctld's answer shows at the end of the next dump, which must be within
  // the interval unless dumps take half of it.
  due_ = now.steady + std::max(report_.interval / 2, report_.interval - 2 * counters_.took);
  soonest_ = now.steady + std::max<Duration>(kDumpGap, counters_.took);
}

void DumpedNodes::fail(Now now, const Error& why) {
  ++counters_.failures;
  report_.failure = why.message;
  report_.failed_at = std::chrono::floor<std::chrono::seconds>(now.wall);
  due_ = soonest_ = now.steady + std::max(backoff_.next(), report_.interval / 2);
}

SteadyTime DumpedNodes::step(Now now, bool wanted, bool soon) {
  if (auto answer = source_->poll(now)) {
    if (!*answer) {
      fail(now, answer->error());
    } else if (const std::string why = foreign_cluster(settings_.cluster, (*answer)->cluster);
               !why.empty()) {
      fail(now,
           {Code::kUnavailable, slurm::failure_text({node::SlurmFailure::kOtherCluster,
                                                     why + "; fix slurmRestURL or slurmConf"})});
    } else {
      finish(now, **std::move(answer));
    }
  }
  const SteadyTime due = soon ? std::min(due_, soonest_) : due_;
  if (!source_->running() && wanted && now.steady >= due) {
    began_ = now.wall;
    started_ = now.steady;
    if (auto started = source_->start(now, !soon && may_be_unchanged(now.steady)); !started) {
      fail(now, {Code::kUnavailable, started.error().message});  // such as a missing scontrol
    }
  }
  return source_->running() ? source_->deadline() : wanted ? due_ : kNever;
}

}  // namespace slurmlet::op
