#include "slurm/answers/sinfo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/gres.h"
#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

constexpr const char* kSinfoFormat =
    "NodeList:|,Partition:|,StateComplete:|,CPUsState:|,Memory:|,AllocMem:|,FreeMem:|,CPUsLoad:|,"
    "Gres:|,GresUsed:|,Version:|,Features:|,features_act:|,Cluster:|,Reservation:|,Timestamp:|,";
constexpr const char* kInPlaceOfUser = "Cluster:|";
constexpr char kEndOfComment = '\x1f';
constexpr const char* kFreeText = ",Comment:\x1f,Reason:|";

// Positions of the columns; behind them stands the free text.
enum SinfoField : std::size_t {
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
  kActiveFeatures,
  kCluster,
  kReservation,
  kTimestamp,
  kUser,
  kFreeColumns,
  kFields
};

using Row = std::array<std::string_view, kFields>;

// A line that begins a row: all columns are there and the fixed ones look as they must. The free
// text still has the "|" of its end, unless it goes on in the next line.
std::optional<Row> parse_row(std::string_view line) {
  Row row;
  for (std::size_t field = 0; field < kFreeColumns; ++field) {
    const auto bar = line.find('|');
    if (bar == std::string_view::npos) {
      return std::nullopt;
    }
    row[field] = line.substr(0, bar);
    line.remove_prefix(bar + 1);
  }
  row[kFreeColumns] = line;
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
  record.cpu_load = reported_load(load_value(row[kLoad]), record.free_memory_mib);
  record.gres = parse_gres(row[kGres]);
  record.gres_used = parse_gres(row[kGresUsed]);
  record.version = text_value(row[kVersion]);
  record.cluster = text_value(row[kCluster]);
  record.features = list_value(row[kFeatures]);
  record.active_features = list_value(row[kActiveFeatures]);
  record.reservation = text_value(row[kReservation]);
  add_partition(row[kPartition], record);
  return record;
}

// The user only means something beside a reason: newer releases print "root" without one. The time
// also tells of a reason that is the word "none", which sinfo prints where there is none as well.
void set_free_text(std::string_view text, const Row& row, node::SlurmNodeRecord& record) {
  const auto end = text.find(kEndOfComment);
  record.comment = text_value(text.substr(0, end));
  record.reason = text_value(text.substr(end + 1));
  record.reason_time = time_value(row[kTimestamp]);
  if (!record.reason.empty()) {
    record.reason_user = text_value(row[kUser]);
  }
}

Error sinfo_garbage(const std::string& why) {
  return {Code::kInvalid, "sinfo's output cannot be parsed: " + why};
}

}  // namespace

bool valid_node_name(std::string_view name) {
  return !name.empty() && name.front() != '-' && name.size() <= 253 && all_alnum(name, "._-");
}

CommandSpec slurm_command(const SinfoSettings& settings, std::vector<std::string> argv) {
  CommandSpec spec;
  spec.argv = std::move(argv);
  if (!settings.bin_dir.empty()) {
    spec.argv.front().insert(0, settings.bin_dir + "/");
  }
  if (!settings.conf.empty()) {
    spec.extra_environment.push_back("SLURM_CONF=" + settings.conf);
  }
  spec.timeout = settings.timeout;
  return spec;
}

CommandSpec sinfo_query(const SinfoSettings& settings, const std::string& node) {
  const std::string user = settings.resolve_user ? "User:|" : kInPlaceOfUser;
  CommandSpec spec = slurm_command(settings, {"sinfo", "-h", "-a", "-N", "-n", node, "--local",
                                              "-O", kSinfoFormat + user + kFreeText});
  spec.extra_environment.emplace_back("SLURM_TIME_FORMAT=%s");
  spec.max_output_bytes = std::size_t{256} << 10;
  return spec;
}

Result<node::SlurmNodeRecord> parse_sinfo(std::string_view text, std::string_view node) {
  if (trim(text).empty()) {
    return Error{Code::kNotFound, "sinfo printed nothing about this node"};
  }
  if (!text.ends_with("|\n")) {
    return sinfo_garbage("it does not end with a complete row");
  }
  std::optional<node::SlurmNodeRecord> record;
  Row first;
  std::string_view free_text;  // of the first row; all rows have the same
  bool in_first = true;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const auto row = parse_row(line);
    if (!record && !row) {
      return sinfo_garbage("the first line is not a row of the requested fields");
    }
    if (row && (*row)[kNode] != node) {
      return sinfo_garbage(fmt::format("it is about node '{}'", (*row)[kNode]));
    }
    if (record && row && (*row)[kCluster] != first[kCluster]) {
      return sinfo_garbage("it is about nodes of two clusters");
    }
    if (record && row && ((*row)[kState] != first[kState] || (*row)[kCpus] != first[kCpus])) {
      return sinfo_garbage("its rows contradict each other");
    }
    if (!record) {
      first = *row;
      record = make_record(first);
      free_text = first[kFreeColumns];
    } else if (row) {
      in_first = false;
      add_partition((*row)[kPartition], *record);
    } else if (in_first) {
      free_text = {free_text.data(),
                   static_cast<std::size_t>(line.data() + line.size() - free_text.data())};
    }
  }
  if (free_text.ends_with('|')) {
    free_text.remove_suffix(1);
  }
  if (free_text.find(kEndOfComment) == std::string_view::npos) {
    return sinfo_garbage("it does not end with a complete row");
  }
  set_free_text(free_text, first, *record);
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
