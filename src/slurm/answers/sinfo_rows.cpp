#include "slurm/answers/sinfo_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "slurm/answers/gres.h"
#include "slurm/answers/hostlist.h"
#include "slurm/answers/state.h"
#include "slurm/answers/utf8.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmNodeRecord;

constexpr std::size_t kMaxNodes = 200'000;  // over all rows

// "Sat Nov 21 20:30:28 2026", over the tables of -l.
bool is_date(std::string_view line) {
  constexpr auto kDays =
      std::to_array<std::string_view>({"Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "});
  line = trim(line);
  return line.size() >= 20 && line.size() <= 40 &&
         std::any_of(kDays.begin(), kDays.end(), [&](auto day) { return line.starts_with(day); }) &&
         std::count(line.begin(), line.end(), ':') == 2;
}

// The words that stand for a base and a flag hide whether some CPUs are in use: "draining" is
// ALLOCATED or MIXED, "completing" and, before 25.11, "fail" may be MIXED.
void refine(std::string_view word, const CpuCounts& counts, node::SlurmState& state) {
  const bool hides = word.substr(0, word.size() - 1).find('+') == std::string_view::npos &&
                     (state.has("DRAIN") || state.has("FAIL") || state.has("COMPLETING"));
  if (hides && counts.allocated > 0 && (state.base == "ALLOCATED" || state.base == "IDLE")) {
    state.base = counts.allocated < counts.total ? "MIXED" : "ALLOCATED";
  }
}

void take_partition(std::string_view cell, SlurmNodeRecord& record) {
  if (cell.ends_with('*')) {  // the cluster's default partition
    cell.remove_suffix(1);
  }
  auto name = text_value(cell);
  const auto& known = record.partitions;
  if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
    record.partitions.push_back(std::move(name));
  }
}

void take_counts(std::string_view cell, SlurmNodeRecord& record) {
  if (const auto counts = cpu_counts(cell)) {
    record.allocated_cpus = counts->allocated;
    record.cpus = counts->total;
  }
}

// False where the column is no free text.
bool take_text(Column column, std::string_view cell, SlurmNodeRecord& record) {
  switch (column) {
    case Column::kVersion:
      record.version = text_value(cell);
      return true;
    case Column::kCluster:
      record.cluster = text_value(cell);
      return true;
    case Column::kUser:  // "root", "root(0)"
      record.reason_user = text_value(cell.substr(0, cell.find('(')));
      return true;
    case Column::kReason:
      record.reason = text_value(cell);
      return true;
    case Column::kComment:
      record.comment = text_value(cell);
      return true;
    case Column::kExtra:
      record.extra = text_value(cell);
      return true;
    case Column::kCommentReason: {
      const auto end = cell.find('\x1f');
      record.comment = text_value(cell.substr(0, end));
      record.reason = text_value(cell.substr(end + 1));
      return true;
    }
    case Column::kHostname:
      record.hostname = text_value(cell);
      return true;
    case Column::kReservation:
      record.reservation = text_value(cell);
      return true;
    default:
      return false;
  }
}

void take_cell(Column column, std::string_view cell, SlurmNodeRecord& record) {
  if (take_text(column, cell, record)) {
    return;
  }
  switch (column) {
    case Column::kPartition:
      take_partition(cell, record);
      break;
    case Column::kCpuCounts:
      take_counts(cell, record);
      break;
    case Column::kCpus:
      record.cpus = number_value(cell);
      break;
    case Column::kMemory:
      record.real_memory_mib = number_value(cell);
      break;
    case Column::kAllocMem:
      record.allocated_memory_mib = number_value(cell);
      break;
    case Column::kFreeMem:
      record.free_memory_mib = number_value(cell);
      break;
    case Column::kLoad:
      record.cpu_load = load_value(cell);
      break;
    case Column::kGres:
      record.gres = parse_gres(valid_utf8(cell));
      break;
    case Column::kGresUsed:
      record.gres_used = parse_gres(valid_utf8(cell));
      break;
    case Column::kFeatures:
      record.features = list_value(cell);
      break;
    case Column::kActiveFeatures:
      record.active_features = list_value(cell);
      break;
    case Column::kTimestamp:
      record.reason_time = time_value(cell);
      break;
    default:
      break;
  }
}

// "debug up infinite 0 n/a": a partition without nodes.
bool is_empty_partition(const Layout& layout, std::string_view row) {
  return !layout.bars && row.find(" n/a") != std::string_view::npos &&
         row.find(" 0 ") != std::string_view::npos;
}

// What holds for one node only: sinfo prints sums and ranges for several.
void forget_sums(SlurmNodeRecord& record) {
  record.cpus.reset();
  record.allocated_cpus.reset();
  record.real_memory_mib.reset();
  record.allocated_memory_mib.reset();
  record.free_memory_mib.reset();
  record.cpu_load.reset();
  record.hostname.clear();
}

}  // namespace

bool is_between_rows(std::string_view line) { return trim(line).empty() || is_date(line); }

std::string cluster_of_line(std::string_view line) {
  constexpr std::string_view kCluster = "CLUSTER: ";
  line = trim(line);
  return line.starts_with(kCluster) ? text_value(line.substr(kCluster.size())) : std::string{};
}

void SinfoRows::read(const Layout& layout, const std::vector<std::string_view>& lines,
                     std::size_t first) {
  const bool may_go_on = layout.free_text() < layout.columns.size();
  std::string_view row;  // so far
  std::size_t row_lines = 0;
  bool whole = false;
  for (std::size_t i = first; i < lines.size(); ++i) {
    const auto line = lines[i];
    if (row.empty() || whole) {
      const auto cluster = cluster_of_line(line);
      if (!cluster.empty()) {
        take_row(layout, row);
        row = {};
        out_.cluster = cluster;
      }
      if (!cluster.empty() || is_between_rows(line) || layout_of_headings(line)) {
        continue;
      }
    }
    const auto longer =
        row.empty()
            ? line
            : std::string_view{row.data(),
                               static_cast<std::size_t>(line.data() + line.size() - row.data())};
    const bool may_join = may_go_on && !row.empty() && row_lines < kMaxRowLines &&
                          begins_row(layout, row) && !split_row(layout, line);
    if (may_join && (!whole || (!begins_row(layout, line) && split_row(layout, longer)))) {
      row = longer;
    } else {
      take_row(layout, row);
      row = line;
      row_lines = 0;
    }
    ++row_lines;
    whole = split_row(layout, row).has_value();
  }
  take_row(layout, row);
}

void SinfoRows::take_row(const Layout& layout, std::string_view row) {
  if (trim(row).empty()) {
    return;
  }
  if (const auto cells = split_row(layout, row)) {
    take_cells(layout, *cells);
  } else if (!layout_of_headings(row) && !is_empty_partition(layout, row)) {
    note(row);
  }
}

void SinfoRows::note(std::string_view what) { out_.not_understood.push_back(excerpt(what)); }

void SinfoRows::take_cells(const Layout& layout, const Cells& cells) {
  SlurmNodeRecord record;
  record.cluster = out_.cluster;
  take_state(layout, cells, record);
  std::string hosts;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (layout.columns[i] == Column::kNode) {
      hosts = cells[i];
    } else {
      take_cell(layout.columns[i], cells[i], record);
    }
  }
  if (record.reason.empty()) {  // newer releases print "root" without a reason
    record.reason_user.clear();
    record.reason_time.reset();
  }
  if (record.cpu_load == 0.0 && !record.free_memory_mib) {
    record.cpu_load.reset();  // reported_load()
  }
  add(hosts, std::move(record));
}

void SinfoRows::take_state(const Layout& layout, const Cells& cells, SlurmNodeRecord& record) {
  std::string_view word;
  bool is_complete = false;
  const CpuCounts* used = nullptr;
  std::optional<CpuCounts> counts;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (layout.columns[i] == Column::kCpuCounts) {
      counts = cpu_counts(cells[i]);
      used = counts ? &*counts : nullptr;
    }
    if (layout.columns[i] != Column::kState && layout.columns[i] != Column::kKnownState) {
      continue;
    }
    const auto state = parse_state(valid_utf8(cells[i]));
    if (!is_state(cells[i])) {
      note(fmt::format("State={}", cells[i]));
    }
    // The complete form tells more than the words.
    is_complete = is_complete || cells[i].find('+') + 1 < cells[i].size();
    if (word.empty() || state.flags.size() > record.state.flags.size()) {
      word = cells[i];
      record.state = state;
    }
  }
  if (!is_complete) {
    record.untold_states = hidden_by(word);
  }
  if (used != nullptr && !word.empty()) {
    refine(word, *used, record.state);
  }
}

void SinfoRows::add(const std::string& hosts, SlurmNodeRecord record) {
  auto names = expand_hostlist(hosts, kMaxNodes - std::min(kMaxNodes, expanded_));
  if (hosts.empty()) {
    add_node({}, std::move(record));
    return;
  }
  if (!names) {
    note(hosts);
    return;
  }
  expanded_ += names->size();
  if (names->size() > 1) {
    forget_sums(record);
  }
  for (const auto& name : *names) {
    add_node(name, record);
  }
}

void SinfoRows::add_node(const std::string& name, SlurmNodeRecord record) {
  record.name = name;
  // With -M nodes of two clusters may have one name.
  const auto [at, is_new] = places_.try_emplace(record.cluster + '\n' + name, out_.nodes.size());
  if (is_new) {
    out_.nodes.push_back(std::move(record));
    return;
  }
  auto& known = out_.nodes[at->second];
  if (!(known.state == record.state)) {
    note(fmt::format("node '{}' has two states, {} and {}", name, known.state.raw(),
                     record.state.raw()));
  }
  for (auto& partition : record.partitions) {
    if (std::find(known.partitions.begin(), known.partitions.end(), partition) ==
        known.partitions.end()) {
      known.partitions.push_back(std::move(partition));
    }
  }
}

}  // namespace slurmlet::slurm
