#include "slurm/answers/pending.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "base/text.h"
#include "slurm/answers/hostlist.h"
#include "slurm/answers/squeue.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {

using node::PendingJob;
using node::WaitsFor;

namespace {

enum Field : std::size_t {
  kId,
  kTasks,
  kState,
  kPartitions,
  kMinCpus,
  kShare,
  kTres,
  kPerNode,
  kPerJob,
  kFeatures,
  kOnNodes,
  kNamedNodes,
  kReason,
  kFields
};
// Between tabs, since an expression of features may have "|" and a reason ",".
constexpr const char* kFormat =
    "ArrayJobID:\t,ArrayTaskID:\t,State:\t,Partition:\t,MinCpus:\t,OverSubscribe:\t,tres-alloc:\t,"
    "tres-per-node:\t,tres-per-job:\t,Feature:\t,NodeList:\t,ReqNodes:\t,Reason:\t";

constexpr std::array<std::string_view, 6> kForNodes{
    "Resources",          "Priority",        "PartitionConfig",
    "PartitionNodeLimit", "ReqNodeNotAvail", "Nodes required for job are DOWN"};

// By prefix.
constexpr std::array<std::string_view, 26> kForOther{"None",
                                                     "Dependency",
                                                     "JobHeld",
                                                     "BeginTime",
                                                     "License",
                                                     "QOS",
                                                     "Assoc",
                                                     "Reservation",
                                                     "PartitionDown",
                                                     "PartitionInactive",
                                                     "PartitionTime",
                                                     "Max",
                                                     "JobArrayTaskLimit",
                                                     "Cleaning",
                                                     "Prolog",
                                                     "BadConstraints",
                                                     "Invalid",
                                                     "BurstBuffer",
                                                     "Deadline",
                                                     "FedJobLock",
                                                     "SchedDefer",
                                                     "Account",
                                                     "JobLaunchFailure",
                                                     "job requeued",
                                                     "launch failed",
                                                     "user hold"};

using Row = std::array<std::string_view, kFields>;

// Without a list of the parts, since there may be 100,000 lines.
template <class Take>
void each_part(std::string_view text, char separator, const Take& take) {
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    take(trim(text.substr(at, end - at)));
    at = end + 1;
  }
}

std::optional<Row> queue_row(std::string_view line) {
  Row row;
  std::size_t count = 0;
  bool fits = true;
  each_part(line, '\t', [&](std::string_view part) {
    if (count < kFields) {
      row[count] = part;
    } else {
      fits = fits && part.empty();
    }
    ++count;
  });
  return fits && count == kFields + 1 ? std::optional{row} : std::nullopt;
}

// "16M", "1.50G"; without a suffix MiB.
std::int64_t mebibytes(std::string_view text) {
  const std::size_t at = text.find_first_not_of("0123456789.");
  const double number = load_value(text.substr(0, at)).value_or(0);
  const char suffix = at == std::string_view::npos ? 'M' : text[at];
  const double factor = suffix == 'K'   ? 1.0 / 1024
                        : suffix == 'G' ? 1024
                        : suffix == 'T' ? 1024 * 1024
                        : suffix == 'P' ? 1024.0 * 1024 * 1024
                                        : 1;
  return static_cast<std::int64_t>(std::min(number * factor, 1e15));
}

// GPUs in "gres:gpu:a100:2,gres/gpu:1": the last number, where there is one.
std::int64_t gpus_of(std::string_view list) {
  std::int64_t sum = 0;
  each_part(list, ',', [&sum](std::string_view entry) {
    if (entry.starts_with("gres:gpu") || entry.starts_with("gres/gpu")) {
      sum += number_value(entry.substr(entry.find_last_of(":=") + 1)).value_or(1);
    }
  });
  return sum;
}

void take_tres(std::string_view list, PendingJob& job) {
  each_part(list, ',', [&job](std::string_view entry) {
    const auto equals = std::min(entry.find('='), entry.size());
    const auto key = entry.substr(0, equals);
    const auto value = entry.substr(std::min(equals + 1, entry.size()));
    if (key == "cpu") {
      job.cpus = number_value(value).value_or(1);
    } else if (key == "node") {
      job.nodes = number_value(value).value_or(1);
    } else if (key == "mem") {
      job.memory_mib = mebibytes(value);
    } else if (key == "gres/gpu") {
      job.gpus = number_value(value).value_or(0);
    }
  });
}

std::int64_t elements(const Row& row, std::int64_t running) {
  return is_nothing(row[kTasks]) ? 1 : count_array(row[kTasks], running);
}

PendingJob pending_job(const Row& row) {
  PendingJob job;
  job.id = row[kId];
  job.waits_for = waits_for(row[kReason]);
  job.reason = job.waits_for == WaitsFor::kUnknown ? std::string{row[kReason]} : "";
  each_part(row[kPartitions], ',',
            [&job](std::string_view partition) { job.partitions.emplace_back(partition); });
  take_tres(row[kTres], job);
  job.nodes = std::max<std::int64_t>(job.nodes, 1);
  job.cpus_per_node = number_value(row[kMinCpus]).value_or(1);
  job.cpus = std::max(job.cpus, job.cpus_per_node * job.nodes);
  job.gpus_per_node = gpus_of(row[kPerNode]);
  job.gpus = std::max({job.gpus, gpus_of(row[kPerJob]), job.gpus_per_node * job.nodes});
  job.exclusive = row[kShare] == "NO";  // see finish()
  job.features = is_nothing(row[kFeatures]) ? "" : std::string{row[kFeatures]};
  return job;
}

Error unreadable(std::string_view line) {
  return {Code::kInvalid, "squeue's output cannot be parsed: \"" + excerpt(line) + "\""};
}

// Of one answer of squeue. Its lines must outlive it.
class Reading {
 public:
  bool take(std::string_view line);
  Result<JobQueue> finish();

 private:
  bool take_pending(std::string_view line, const Row& row, std::int64_t count);
  bool add_nodes(std::string_view list);

  JobQueue queue_;
  // What squeue prints behind ArrayJobID and ArrayTaskID, and where the first such job is.
  std::unordered_map<std::string_view, std::size_t> alike_;
  std::unordered_map<std::string_view, std::int64_t> running_;  // elements, by array
  std::vector<std::string_view> limited_;                       // pending arrays with "%"
  bool shows_sharing_ = false;
};

bool Reading::add_nodes(std::string_view list) {
  const auto names = expand_hostlist(list);
  if (names) {
    queue_.nodes.insert(names->begin(), names->end());
  }
  return names.has_value();
}

// A long queue has few kinds of jobs: 100,000 of them take 30 MB one by one.
bool Reading::take_pending(std::string_view line, const Row& row, std::int64_t count) {
  if (count <= 0) {
    return true;
  }
  const auto rest = line.substr(static_cast<std::size_t>(row[kState].data() - line.data()));
  const auto [found, is_new] = alike_.try_emplace(rest, queue_.pending.size());
  if (!is_new) {
    queue_.pending[found->second].count += count;
    return true;
  }
  PendingJob job = pending_job(row);
  job.count = count;
  bool is_read = true;
  // A job that names its nodes waits for these, however many others there are.
  if (!is_nothing(row[kNamedNodes]) && job.waits_for == WaitsFor::kNodes) {
    const auto names = expand_hostlist(row[kNamedNodes]);
    is_read = names && add_nodes(row[kNamedNodes]);
    job.waits_for = names && static_cast<std::int64_t>(names->size()) >= job.nodes
                        ? WaitsFor::kOther
                        : job.waits_for;
  }
  queue_.pending.push_back(std::move(job));
  return is_read;
}

bool Reading::take(std::string_view line) {
  const auto row = queue_row(line);
  if (!row || !number_value((*row)[kId]) || (*row)[kState].empty()) {
    return false;
  }
  shows_sharing_ = shows_sharing_ || (*row)[kShare] == "OK" || (*row)[kShare] == "YES";
  if ((*row)[kState] == "PENDING") {
    if ((*row)[kTasks].find('%') != std::string_view::npos) {
      limited_.push_back(line);
      return true;
    }
    return take_pending(line, *row, elements(*row, 0));
  }
  if (is_nothing((*row)[kOnNodes]) || (*row)[kState] == "REQUEUE_HOLD" ||
      (*row)[kState] == "SPECIAL_EXIT") {
    return true;
  }
  running_[(*row)[kId]] += 1;
  return add_nodes((*row)[kOnNodes]);
}

Result<JobQueue> Reading::finish() {
  for (const std::string_view line : limited_) {
    const auto row = queue_row(line);
    if (!row || !take_pending(line, *row, elements(*row, running_[(*row)[kId]]))) {
      return unreadable(line);
    }
  }
  // 26.05 prints NO for all pending jobs. Too few machines are corrected by the next query, too
  // many cost a boot.
  for (PendingJob& job : queue_.pending) {
    job.exclusive = job.exclusive && shows_sharing_;
  }
  return std::move(queue_);
}

}  // namespace

WaitsFor waits_for(std::string_view reason) {
  const auto is = [&](std::string_view known) { return reason.starts_with(known); };
  return std::ranges::any_of(kForNodes, is)   ? WaitsFor::kNodes
         : std::ranges::any_of(kForOther, is) ? WaitsFor::kOther
                                              : WaitsFor::kUnknown;
}

CommandSpec queue_query(const ClientSettings& settings) {
  CommandSpec spec = slurm_command(settings, {"squeue", "--local", "-a", "-h", "-O", kFormat});
  spec.extra_environment.emplace_back("SLURM_BITSTR_LEN=0");  // else arrays are cut off
  spec.max_output_bytes = std::size_t{256} << 20;
  return spec;
}

Result<JobQueue> read_queue(const CommandOutput& output) {
  const auto lines = TRY(squeue_lines(output));
  Reading reading;
  for (const std::string_view line : lines) {
    if (!reading.take(line)) {
      return unreadable(line);
    }
  }
  return reading.finish();
}

std::int64_t count_array(std::string_view tasks, std::int64_t running) {
  tasks.remove_prefix(tasks.starts_with('[') ? 1 : 0);
  tasks = tasks.substr(0, tasks.find(']'));
  const auto percent = tasks.find('%');
  const auto limit =
      percent == std::string_view::npos ? std::nullopt : number_value(tasks.substr(percent + 1));
  tasks = tasks.substr(0, percent);
  std::int64_t count = 0;
  for (const std::string_view part : split(tasks, ',')) {
    const auto colon = part.find(':');
    const auto step =
        colon == std::string_view::npos ? 1 : number_value(part.substr(colon + 1)).value_or(1);
    const auto range = part.substr(0, colon);
    const auto dash = range.find('-');
    const auto first = number_value(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_value(range.substr(dash + 1));
    if (first && last && *last >= *first) {
      count += (*last - *first) / std::max<std::int64_t>(step, 1) + 1;
    }
  }
  count = std::max<std::int64_t>(count, 1);
  return limit && *limit > 0 ? std::clamp<std::int64_t>(*limit - running, 0, count) : count;
}

}  // namespace slurmlet::slurm
