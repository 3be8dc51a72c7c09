#include "slurm/answers/sinfo_columns.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

constexpr std::string_view kSpace = " \t\r";
constexpr std::string_view kDigits = "0123456789";

struct Heading {
  std::string_view text;
  Column column;
};

// src/sinfo/print.c of Slurm, 22.05 … 25.11.
constexpr std::array kHeadings = std::to_array<Heading>({
    {"NODELIST", Column::kNode},
    {"PARTITION", Column::kPartition},
    {"STATE", Column::kState},
    {"STATECOMPLETE", Column::kState},
    {"CPUS(A/I/O/T)", Column::kCpuCounts},
    {"CPUS", Column::kCpus},
    {"MEMORY", Column::kMemory},
    {"ALLOCMEM", Column::kAllocMem},
    {"FREE_MEM", Column::kFreeMem},
    {"CPU_LOAD", Column::kLoad},
    {"GRES", Column::kGres},
    {"GRES_USED", Column::kGresUsed},
    {"VERSION", Column::kVersion},
    {"AVAIL_FEATURES", Column::kFeatures},
    {"ACTIVE_FEATURES", Column::kActiveFeatures},
    {"CLUSTER", Column::kCluster},
    {"TIMESTAMP", Column::kTimestamp},
    {"USER", Column::kUser},
    {"REASON", Column::kReason},
    {"COMMENT", Column::kComment},
    {"EXTRA", Column::kExtra},
    {"HOSTNAMES", Column::kHostname},
    {"RESERVATION", Column::kReservation},
    {"NODES", Column::kNodeCount},
    {"NODES(A/I)", Column::kUnused},
    {"NODES(A/I/O/T)", Column::kUnused},
    {"AVAIL", Column::kAvail},
    {"TIMELIMIT", Column::kTimeLimit},
    {"DEFAULTTIME", Column::kTimeLimit},
    {"S:C:T", Column::kSizes},
    {"SOCKETS", Column::kNumber},
    {"CORES", Column::kNumber},
    {"THREADS", Column::kNumber},
    {"TMP_DISK", Column::kNumber},
    {"WEIGHT", Column::kNumber},
    {"PORT", Column::kNumber},
    {"JOB_SIZE", Column::kUnused},
    {"ROOT", Column::kUnused},
    {"OVERSUBSCRIBE", Column::kUnused},
    {"GROUPS", Column::kUnused},
    {"ALLOCNODES", Column::kUnused},
    {"NODE_ADDR", Column::kUnused},
    {"PREEMPT_MODE", Column::kUnused},
    {"PRIO_JOB_FACTOR", Column::kUnused},
    {"PRIO_TIER", Column::kUnused},
    {"MAX_CPUS_PER_NODE", Column::kUnused},
});

bool consists_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" \t\r\n") == std::string_view::npos;
}

// "cpu01", "cpu[01-02],gpu1"
bool is_host_list(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.front() != '[' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view{"._-[],"}.find(c) != std::string_view::npos;
         });
}

bool is_state_shaped(std::string_view text) {
  return !text.empty() && text.size() <= 200 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view{"_+?*~#!%$@^-"}.find(c) != std::string_view::npos;
  });
}

// "4096", "250+" (several nodes), "N/A"
bool is_number(std::string_view text) {
  if (text.ends_with('+')) {
    text.remove_suffix(1);
  }
  return consists_of(text, "0123456789.") || is_nothing(text);
}

bool is_availability(std::string_view text) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"up", "down", "drain", "inact", "inactive", "unknown", "unkno", "n/a"});
  return std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

bool is_time_limit(std::string_view text) {
  return text == "infinite" || text == "n/a" || consists_of(text, "0123456789:-");
}

// One cell from the front or the back of what is left; false when there is none.
bool take_front(bool bars, std::string_view& text, std::string_view& cell) {
  if (!bars) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    cell = text.substr(0, text.find_first_of(kSpace));
    text.remove_prefix(cell.size());
    return !cell.empty();
  }
  const auto bar = text.find('|');
  if (bar == std::string_view::npos) {
    return false;
  }
  cell = trim(text.substr(0, bar));
  text.remove_prefix(bar + 1);
  return true;
}

bool take_back(bool bars, std::string_view& text, std::string_view& cell) {
  if (!bars) {
    text = trim(text);
    const auto space = text.find_last_of(" \t\r\n");
    cell = text.substr(space == std::string_view::npos ? 0 : space + 1);
    text.remove_suffix(cell.size());
    return !cell.empty();
  }
  const auto bar = text.rfind('|');
  if (bar == std::string_view::npos) {
    return false;
  }
  cell = trim(text.substr(bar + 1));
  text.remove_suffix(text.size() - bar);
  return true;
}

}  // namespace

std::optional<Column> column_of_heading(std::string_view heading) {
  for (const auto& known : kHeadings) {
    if (heading == known.text) {
      return known.column;
    }
  }
  for (const auto& known : kHeadings) {
    if (heading.size() >= 5 && known.text.starts_with(heading)) {
      return known.column;
    }
  }
  return std::nullopt;
}

bool fits(Column column, std::string_view cell) {
  switch (column) {
    case Column::kNode:
      return is_host_list(cell);
    case Column::kState:
      return is_state_shaped(cell);
    case Column::kKnownState:  // sinfo prints lower case; "Unknown" is a time or a user
      return is_state(cell) && to_lower(cell) == cell;
    case Column::kCpuCounts:
      return cpu_counts(cell).has_value();
    case Column::kCpus:
    case Column::kMemory:
    case Column::kAllocMem:
    case Column::kFreeMem:
    case Column::kLoad:
    case Column::kNumber:
      return is_number(cell);
    case Column::kNodeCount:
      return consists_of(cell, kDigits);
    case Column::kAvail:
      return is_availability(cell);
    case Column::kTimeLimit:
      return is_time_limit(cell);
    case Column::kSizes:
      return consists_of(cell, "0123456789:+");
    case Column::kCommentReason:
      return cell.find('\x1f') != cell.npos;
    case Column::kTimestamp:
      return is_nothing(cell) || (is_word(cell) && cell.find_first_of(kDigits) != cell.npos);
    case Column::kPartition:
    case Column::kUser:
    case Column::kGres:
    case Column::kGresUsed:
    case Column::kVersion:
      return cell.empty() || is_word(cell);
    default:
      return true;
  }
}

std::size_t Layout::free_text() const {
  for (const auto free :
       {Column::kReason, Column::kComment, Column::kExtra, Column::kCommentReason}) {
    const auto at = std::find(columns.begin(), columns.end(), free);
    if (at != columns.end()) {
      return static_cast<std::size_t>(at - columns.begin());
    }
  }
  return columns.size();
}

std::optional<Layout> layout_of_headings(std::string_view line) {
  line = trim(line);
  Layout layout;
  layout.bars = line.find('|') != std::string_view::npos;
  layout.bar_at_end = line.ends_with('|');
  if (layout.bar_at_end) {
    line.remove_suffix(1);
  }
  while (!trim(line).empty()) {
    std::string_view cell;
    if (!take_front(layout.bars, line, cell)) {
      cell = trim(line);  // the last one
      line = {};
    }
    const auto column = column_of_heading(cell);
    if (!column || layout.columns.size() > 60) {
      return std::nullopt;
    }
    layout.columns.push_back(*column);
  }
  return layout.columns.empty() ? std::nullopt : std::optional{layout};
}

std::optional<Cells> split_row(const Layout& layout, std::string_view row) {
  if (layout.columns.empty()) {
    return std::nullopt;  // the heading RESERVATION alone, its column left out
  }
  if (layout.bar_at_end) {
    row = trim(row);
    if (!row.ends_with('|')) {
      return std::nullopt;
    }
    row.remove_suffix(1);
  }
  const auto count = layout.columns.size();
  const auto free = std::min(layout.free_text(), count - 1);  // without one the last is the rest
  Cells cells(count);
  for (std::size_t i = 0; i < free; ++i) {
    if (!take_front(layout.bars, row, cells[i])) {
      return std::nullopt;
    }
  }
  for (std::size_t i = count - 1; i > free; --i) {
    if (!take_back(layout.bars, row, cells[i])) {
      return std::nullopt;
    }
  }
  cells[free] = trim(row);
  const bool has_free_text = layout.free_text() < count;
  if (!has_free_text && layout.bars && row.find('|') != std::string_view::npos) {
    return std::nullopt;
  }
  if (!has_free_text && !layout.bars && !is_word(cells[free])) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!fits(layout.columns[i], cells[i])) {
      return std::nullopt;
    }
  }
  return cells;
}

bool begins_row(const Layout& layout, std::string_view line) {
  const auto free = layout.free_text();
  if (free == 0 || free == layout.columns.size()) {
    return true;  // rows are lines
  }
  for (std::size_t i = 0; i < free; ++i) {
    std::string_view cell;
    if (!take_front(layout.bars, line, cell) || !fits(layout.columns[i], cell)) {
      return false;
    }
  }
  return true;
}

}  // namespace slurmlet::slurm
