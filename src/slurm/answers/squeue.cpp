#include "slurm/answers/squeue.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "slurm/answers/hostlist.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

enum SqueueField : std::size_t {
  kJobId,
  kArray,
  kTask,
  kJobState,
  kHetJobId,
  kBatch,
  kRequeue,
  kEndTime,
  kNodeList,
  kJobFields
};
constexpr const char* kSqueueFormat =
    "JobID:|,ArrayJobID:|,ArrayTaskID:|,State:|,HetJobID:|,BatchFlag:|,Requeue:|,EndTime:|,"
    "NodeList:|";

std::optional<std::array<std::string_view, kJobFields>> columns(std::string_view line) {
  const auto parts = split(line, '|');
  if (parts.size() != kJobFields + 1 || !trim(parts.back()).empty()) {
    return std::nullopt;
  }
  std::array<std::string_view, kJobFields> row;
  std::transform(parts.begin(), parts.end() - 1, row.begin(),
                 [](std::string_view part) { return trim(part); });
  return row;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// BatchFlag counts: slurmctld adds to it with some ways to requeue a job (job_mgr.c).
bool is_set(std::string_view flag) { return is_number(flag) && flag != "0"; }

// One task of each array has the number of the whole array: alone, that number means them all. The
// components of a heterogeneous job are requeued by the number of their leader only, all together.
std::string id_of(const std::array<std::string_view, kJobFields>& row) {
  if (is_number(row[kHetJobId]) && row[kHetJobId] != "0") {
    return std::string{row[kHetJobId]};
  }
  return is_number(row[kTask]) ? std::string{row[kArray]} + "_" + std::string{row[kTask]}
                               : std::string{row[kJobId]};
}

// Requeued and not started again: it is on no node, but squeue may still name those of its last
// run. While these run an epilog its state is COMPLETING.
bool is_waiting(std::string_view state) {
  return state == "PENDING" || state == "REQUEUE_HOLD" || state == "SPECIAL_EXIT";
}

}  // namespace

CommandSpec squeue_query(const ClientSettings& settings) {
  CommandSpec spec =
      slurm_command(settings, {"squeue", "--local", "-a", "-h", "-O", kSqueueFormat});
  spec.extra_environment.emplace_back("SLURM_TIME_FORMAT=%s");
  spec.max_output_bytes = std::size_t{256} << 20;
  return spec;
}

namespace {

// Adds the job of one line to those of its `nodes`; false for a line that is not squeue's.
bool take_line(std::string_view line, const std::set<std::string>& nodes, JobsByNode& jobs) {
  const auto row = columns(line);
  if (!row || !is_number((*row)[kJobId]) || (*row)[kJobState].empty()) {
    return false;
  }
  const std::string_view list = (*row)[kNodeList];
  if (is_nothing(list) || is_waiting((*row)[kJobState])) {
    return true;
  }
  const auto names = expand_hostlist(list);
  if (!names || (is_number((*row)[kTask]) && !is_number((*row)[kArray]))) {
    return false;
  }
  const QueuedJob job{id_of(*row), (*row)[kJobState] == "COMPLETING",
                      is_set((*row)[kBatch]) && is_set((*row)[kRequeue]),
                      time_value((*row)[kEndTime])};
  for (const std::string& name : *names) {
    if (nodes.contains(name)) {
      jobs[name].push_back(job);
    }
  }
  return true;
}

}  // namespace

Result<std::vector<std::string_view>> squeue_lines(const CommandOutput& output) {
  if (output.too_long || !output.succeeded()) {
    const auto known = known_failure(output.err);
    return Error{Code::kUnavailable, known              ? known->detail
                                     : output.timed_out ? "squeue did not finish in time"
                                                        : "squeue failed: " + excerpt(output.err)};
  }
  if (!output.out.empty() && !output.out.ends_with('\n')) {
    return Error{Code::kInvalid, "squeue's output is truncated"};
  }
  auto lines = split(output.out, '\n');
  std::erase_if(lines, [](std::string_view line) { return trim(line).empty(); });
  return lines;
}

Result<JobsByNode> read_squeue(const CommandOutput& output, const std::set<std::string>& nodes) {
  const auto lines = TRY(squeue_lines(output));
  JobsByNode jobs;
  for (const std::string_view line : lines) {
    if (!take_line(line, nodes, jobs)) {
      return Error{Code::kInvalid, "squeue's output cannot be parsed: \"" + excerpt(line) + "\""};
    }
  }
  return jobs;
}

}  // namespace slurmlet::slurm
