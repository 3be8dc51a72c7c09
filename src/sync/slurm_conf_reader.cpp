#include "sync/slurm_conf_reader.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace slurmlet::sync {
namespace {

std::vector<slurm::SlurmdSeen> slurmds_of(const host::Paths& paths, const TrustedUsers& users) {
  auto seen = slurm::running_slurmds(paths.proc, users);
  return seen ? *std::move(seen) : std::vector<slurm::SlurmdSeen>{};
}

// All but the pid, which a reconfigure of Slurm changes.
bool same_slurmd(slurm::SlurmdSeen a, const slurm::SlurmdSeen& b) {
  a.pid = b.pid;
  return a == b;
}

bool same_slurmds(const std::vector<slurm::SlurmdSeen>& a,
                  const std::vector<slurm::SlurmdSeen>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_slurmd);
}

bool says_the_same(const SlurmSetup& a, const SlurmSetup& b) {
  return a.node_name == b.node_name && a.problem == b.problem && a.name_problem == b.name_problem &&
         a.conf == b.conf && a.left_out == b.left_out;
}

void log_setup(const SlurmSetup& setup) {
  if (!setup.name_problem.empty()) {
    log::warning("this machine's Slurm node is not known: " + setup.name_problem);
  } else if (!setup.problem.empty()) {
    log::warning("slurm.conf not read: " + setup.problem);
  } else {
    log::info("Slurm node " + setup.node_name + " of cluster \"" + setup.conf.cluster_name +
              "\" (" + setup.why + "; " + setup.conf.path + ")");
  }
  for (const auto& file : setup.left_out) {
    log::warning("part of slurm.conf not read: " + file);
  }
}

}  // namespace

SlurmConfReader::SlurmConfReader(const FactsOptions& options, Discover discover, SlurmSetup unread)
    : options_(options),
      discover_(std::move(discover)),
      setup_(std::move(unread)),
      reading_(options.reading_limit) {
  reading_.request();
}

bool SlurmConfReader::await(Now now, Duration patience) {
  const std::string problem = reading_.problem();
  return finish(reading_.await(
                    now.steady, [this] { return work(); }, patience),
                problem);
}

bool SlurmConfReader::read_again(Now now) {
  reread_at_ = kNever;
  find_slurmds();
  return read(now);
}

bool SlurmConfReader::read(Now now) {
  reading_.request();
  const std::string problem = reading_.problem();
  return finish(reading_.poll(
                    now.steady, [this] { return work(); }, options_.patience),
                problem);
}

// A second slurmd may start at any time, or a surplus one exit; while none runs nothing changes. A
// rejected file may get the right owner or mode, and a name server may answer again.
bool SlurmConfReader::recheck(Now now) {
  if (!is_read_) {
    return false;
  }
  const bool others = find_slurmds() && slurmds_.size() > 1;
  return (others || names_no_node()) && read(now);
}

void SlurmConfReader::slurmd_started(int pid, Now now, Duration after) {
  if (std::find(read_beside_.begin(), read_beside_.end(), pid) == read_beside_.end()) {
    reread_at_ = now.steady + after;
  }
}

SteadyTime SlurmConfReader::wake_at(Now now) const {
  return std::min(reread_at_, reading_.wake_at(now.steady));
}

std::function<SlurmConfReader::Reading()> SlurmConfReader::work() const {
  return [discover = discover_, paths = options_.paths, users = options_.slurm_users,
          is_first = !is_read_, slurmds = slurmds_] {
    Reading reading;
    reading.slurmds = is_first ? slurmds_of(paths, users()) : slurmds;
    reading.setup = discover(reading.slurmds);
    return reading;
  };
}

// Whether there are others than before.
bool SlurmConfReader::find_slurmds() {
  auto seen = slurmds_of(options_.paths, setup_.watch.places.users);
  const bool others = !same_slurmds(slurmds_, seen);
  slurmds_ = std::move(seen);
  return others;
}

bool SlurmConfReader::finish(std::optional<Reading> reading, const std::string& problem_before) {
  if (reading) {
    if (!problem_before.empty()) {
      log::info("slurm.conf answers again; before, " + problem_before);
    }
    take(*std::move(reading));
  } else if (problem_before.empty() && reading_.is_late()) {
    log::warning((is_read_ ? "slurm.conf not read again, what it said before still counts: "
                           : "slurm.conf not read: ") +
                 reading_.problem());
  }
  return reading.has_value();
}

void SlurmConfReader::take(Reading reading) {
  const bool is_first = !std::exchange(is_read_, true);
  read_beside_.clear();
  for (const auto& slurmd : reading.slurmds) {
    read_beside_.push_back(slurmd.pid);
  }
  if (is_first) {
    slurmds_ = std::move(reading.slurmds);
  }
  const SlurmSetup before = std::exchange(setup_, std::move(reading.setup));
  if (is_first || !says_the_same(before, setup_)) {
    log_setup(setup_);
  }
}

}  // namespace slurmlet::sync
