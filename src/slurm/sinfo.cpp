#include "slurm/sinfo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <vector>

#include "base/text.h"
#include "slurm/gres.h"
#include "slurm/state.h"
#include "slurm/utf8.h"
#include "slurm/values.h"

namespace slurmlet::slurm {
namespace {

constexpr const char* kFormat =
    "NodeList:|,Partition:|,StateComplete:|,CPUsState:|,Memory:|,AllocMem:|,FreeMem:|,CPUsLoad:|,"
    "Gres:|,GresUsed:|,Version:|,Features:|,Cluster:|,Timestamp:|,User:|,Reason:|";

// Positions in kFormat.
enum Field : std::size_t {
  kNode,
  kPartition,
  kState,
  kCpus,
  kMemory,
  kAllocMem,
  kFreeMem,
  kLoad,
  kGres,
  kGresUsed,
  kVersion,
  kFeatures,
  kCluster,
  kTimestamp,
  kUser,
  kReason,
  kFields
};

using Row = std::array<std::string_view, kFields>;

// A line that begins a row: all fields are there and the fixed ones look as they must. The Reason
// still has the "|" of its end, unless it goes on in the next line.
std::optional<Row> parse_row(std::string_view line) {
  Row row;
  for (std::size_t field = 0; field < kReason; ++field) {
    const auto bar = line.find('|');
    if (bar == std::string_view::npos) {
      return std::nullopt;
    }
    row[field] = line.substr(0, bar);
    line.remove_prefix(bar + 1);
  }
  row[kReason] = line;
  const bool plausible =
      valid_node_name(row[kNode]) && !parse_state(valid_utf8(row[kState])).base.empty() &&
      row[kState].find(' ') == std::string_view::npos && cpu_counts(row[kCpus]).has_value();
  return plausible ? std::optional{row} : std::nullopt;
}

void add_partition(std::string_view text, node::SlurmNodeRecord& record) {
  std::string name = text_value(text);
  if (name.ends_with('*')) {  // the cluster's default partition
    name.pop_back();
  }
  auto& known = record.partitions;
  if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
    known.push_back(std::move(name));
  }
}

node::SlurmNodeRecord make_record(const Row& row) {
  node::SlurmNodeRecord record;
  record.name = row[kNode];
  record.state = parse_state(valid_utf8(row[kState]));
  if (const auto counts = cpu_counts(row[kCpus])) {
    record.allocated_cpus = counts->allocated;
    record.cpus = counts->total;
  }
  record.real_memory_mib = number_value(row[kMemory]);
  record.allocated_memory_mib = number_value(row[kAllocMem]);
  record.free_memory_mib = number_value(row[kFreeMem]);
  record.cpu_load = reported_load(row[kLoad], record.free_memory_mib);
  record.gres = parse_gres(valid_utf8(row[kGres]));
  record.gres_used = parse_gres(valid_utf8(row[kGresUsed]));
  record.version = text_value(row[kVersion]);
  record.cluster = text_value(row[kCluster]);
  record.features = list_value(row[kFeatures]);
  add_partition(row[kPartition], record);
  return record;
}

// User and time only mean something beside a reason: newer releases print "root" without one.
void set_reason(std::string_view text, const Row& row, node::SlurmNodeRecord& record) {
  record.reason = text_value(text);
  if (record.reason.empty()) {
    return;
  }
  record.reason_user = text_value(row[kUser]);
  record.reason_time = time_value(row[kTimestamp]);
}

Error garbage(const std::string& why) {
  return {Code::kInvalid, "the answer of sinfo cannot be understood: " + why};
}

}  // namespace

bool valid_node_name(std::string_view name) {
  return !name.empty() && name.front() != '-' && name.size() <= 253 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ||
                  c == '-';
         });
}

CommandSpec sinfo_query(const SinfoSettings& settings, const std::string& node) {
  CommandSpec spec;
  const std::string program = settings.bin_dir.empty() ? "sinfo" : settings.bin_dir + "/sinfo";
  spec.argv = {program, "-h", "-a", "-N", "-n", node, "-O", kFormat};
  spec.extra_environment = {"SLURM_TIME_FORMAT=%s"};
  if (!settings.conf.empty()) {
    spec.extra_environment.push_back("SLURM_CONF=" + settings.conf);
  }
  // Each of these would change what is asked or how it is printed.
  spec.unset_environment = {"SINFO_ALL",       "SINFO_FEDERATION", "SINFO_FORMAT",  "SINFO_LOCAL",
                            "SINFO_PARTITION", "SINFO_SORT",       "SLURM_CLUSTERS"};
  spec.timeout = settings.timeout;
  spec.max_output_bytes = std::size_t{256} << 10;
  return spec;
}

Result<node::SlurmNodeRecord> parse_sinfo(std::string_view text, std::string_view node) {
  if (trim(text).empty()) {
    return Error{Code::kNotFound, "sinfo printed nothing about this node"};
  }
  if (!text.ends_with("|\n")) {
    return garbage("it does not end with a complete row");
  }
  std::optional<node::SlurmNodeRecord> record;
  Row first;
  std::string_view reason;  // of the first row; all rows have the same
  bool in_first = true;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const auto row = parse_row(line);
    if (!record && !row) {
      return garbage("the first line is not a row of the fields that were asked for");
    }
    if (row && (*row)[kNode] != node) {
      return garbage(fmt::format("it is about node '{}'", (*row)[kNode]));
    }
    if (!record) {
      first = *row;
      record = make_record(first);
      reason = first[kReason];
    } else if (row) {
      in_first = false;
      add_partition((*row)[kPartition], *record);
    } else if (in_first) {
      reason = {reason.data(), static_cast<std::size_t>(line.data() + line.size() - reason.data())};
    }
  }
  if (reason.ends_with('|')) {
    reason.remove_suffix(1);
  }
  set_reason(reason, first, *record);
  return *std::move(record);
}

QueryResult interpret(const CommandOutput& output, std::string_view node) {
  if (auto failure = classify(output)) {
    return {std::nullopt, std::move(failure), std::nullopt};
  }
  auto record = parse_sinfo(output.out, node);
  if (record) {
    return {*std::move(record), std::nullopt, std::nullopt};
  }
  return {std::nullopt, QueryFailure{node::SlurmFailure::kGarbage, record.error().message},
          std::nullopt};
}

}  // namespace slurmlet::slurm
