#include "slurm/answers/sinfo_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/gres.h"
#include "slurm/answers/hostlist.h"
#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmNodeRecord;

constexpr std::size_t kMaxNodes = 200'000;  // over all rows

struct Column {
  std::string_view heading;
  void (*set)(std::string_view cell, SlurmNodeRecord& record);
};

template <auto field, auto parse>
void set(std::string_view cell, SlurmNodeRecord& record) {
  record.*field = parse(cell);
}

void set_user(std::string_view cell, SlurmNodeRecord& record) {  // "root", "root(0)"
  record.reason_user = text_value(cell.substr(0, cell.find('(')));
}

void set_cpu_counts(std::string_view cell, SlurmNodeRecord& record) {
  if (const auto counts = cpu_counts(cell)) {
    record.allocated_cpus = counts->allocated;
    record.cpus = counts->total;
  }
}

void set_partition(std::string_view cell, SlurmNodeRecord& record) {
  auto name = text_value(cell.substr(0, cell.find('*')));  // "*": the default one
  if (!name.empty()) {
    record.partitions.push_back(std::move(name));
  }
}

// Of two words the one that tells more.
void set_word(std::string_view cell, SlurmNodeRecord& record) {
  const auto state = parse_state(valid_utf8(cell));
  if (record.state.base.empty() || state.flags.size() > record.state.flags.size()) {
    record.state = state;
    record.unreported_states = hidden_by(cell);
  }
}

void set_complete_state(std::string_view cell, SlurmNodeRecord& record) {
  record.state = parse_state(valid_utf8(cell));
  record.unreported_states.clear();
}

void ignore(std::string_view /*cell*/, SlurmNodeRecord& /*record*/) {}

// src/sinfo/print.c of Slurm, 22.05 … 25.11.
constexpr std::array kColumns = std::to_array<Column>({
    {"NODELIST", set<&SlurmNodeRecord::name, text_value>},
    {"PARTITION", set_partition},
    {"STATE", set_word},
    {"STATECOMPLETE", set_complete_state},
    {"CPUS(A/I/O/T)", set_cpu_counts},
    {"CPUS", set<&SlurmNodeRecord::cpus, number_value>},
    {"MEMORY", set<&SlurmNodeRecord::real_memory_mib, number_value>},
    {"ALLOCMEM", set<&SlurmNodeRecord::allocated_memory_mib, number_value>},
    {"FREE_MEM", set<&SlurmNodeRecord::free_memory_mib, number_value>},
    {"CPU_LOAD", set<&SlurmNodeRecord::cpu_load, load_value>},
    {"GRES", set<&SlurmNodeRecord::gres, parse_gres>},
    {"GRES_USED", set<&SlurmNodeRecord::gres_used, parse_gres>},
    {"VERSION", set<&SlurmNodeRecord::version, text_value>},
    {"AVAIL_FEATURES", set<&SlurmNodeRecord::features, list_value>},
    {"ACTIVE_FEATURES", set<&SlurmNodeRecord::active_features, list_value>},
    {"CLUSTER", set<&SlurmNodeRecord::cluster, text_value>},
    {"TIMESTAMP", set<&SlurmNodeRecord::reason_time, time_value>},
    {"USER", set_user},
    {"REASON", set<&SlurmNodeRecord::reason, text_value>},
    {"COMMENT", set<&SlurmNodeRecord::comment, text_value>},
    {"EXTRA", set<&SlurmNodeRecord::extra, text_value>},
    {"HOSTNAMES", set<&SlurmNodeRecord::hostname, text_value>},
    {"RESERVATION", set<&SlurmNodeRecord::reservation, text_value>},
});
constexpr Column kIgnored{"", ignore};
constexpr std::string_view kUnusedHeadings =
    "NODES NODES(A/I) NODES(A/I/O/T) AVAIL TIMELIMIT DEFAULTTIME S:C:T SOCKETS CORES THREADS "
    "TMP_DISK WEIGHT PORT JOB_SIZE ROOT OVERSUBSCRIBE GROUPS ALLOCNODES NODE_ADDR PREEMPT_MODE "
    "PRIO_JOB_FACTOR PRIO_TIER MAX_CPUS_PER_NODE";

const Column* find_column(std::string_view heading) {
  if (has_word(kUnusedHeadings, heading)) {  // AVAIL is no cut AVAIL_FEATURES
    return &kIgnored;
  }
  const bool may_be_cut = heading.size() >= 5;  // to the width of its column: "AVAIL_FE"
  const Column* found = nullptr;
  for (const auto& column : kColumns) {
    if (column.heading == heading) {
      return &column;
    }
    if (found == nullptr && may_be_cut && column.heading.starts_with(heading)) {
      found = &column;
    }
  }
  const bool unused = may_be_cut && contains(kUnusedHeadings, " " + std::string{heading});
  return found == nullptr && unused ? &kIgnored : found;
}

using Cells = std::vector<std::string_view>;

struct Layout {
  std::vector<const Column*> columns;
  bool bars = false;        // "|" between the columns, else white space
  bool bar_at_end = false;  // and behind the last one (-O "Field:|")

  std::size_t find(std::string_view heading) const {
    const auto at = std::find_if(columns.begin(), columns.end(),
                                 [&](const auto* column) { return column->heading == heading; });
    return static_cast<std::size_t>(at - columns.begin());
  }
  bool has(std::string_view heading) const { return find(heading) < columns.size(); }
  // The column that may hold anything; columns.size() without one.
  std::size_t free_text() const {
    return std::min({find("REASON"), find("COMMENT"), find("EXTRA")});
  }
};

// The words, or what stands between bars.
Cells cells_of(std::string_view line, bool bars) { return bars ? split(line, '|') : words(line); }

std::optional<Layout> layout_of(std::string_view line) {
  Layout layout;
  layout.bars = line.find('|') != std::string_view::npos;
  layout.bar_at_end = line.ends_with('|');
  line.remove_suffix(layout.bar_at_end ? 1 : 0);
  constexpr std::size_t kLongest = 1000;
  for (const auto heading : cells_of(line.substr(0, kLongest), layout.bars)) {
    const auto* column = find_column(trim(heading));
    if (column == nullptr) {
      return std::nullopt;
    }
    layout.columns.push_back(column);
  }
  const bool tells = layout.has("NODELIST") || layout.has("STATE") || layout.has("STATECOMPLETE");
  return tells ? std::optional{layout} : std::nullopt;
}

bool is_host_list(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.front() != '[' && all_alnum(text, "._-[],");
}

// The cells of one row; nothing when they do not fit.
std::optional<Cells> split_row(const Layout& layout, std::string_view row) {
  if (layout.bar_at_end && !row.ends_with('|')) {
    return std::nullopt;
  }
  row.remove_suffix(layout.bar_at_end ? 1 : 0);
  auto cells = cells_of(row, layout.bars);
  const auto count = layout.columns.size();
  const auto place = [&](std::size_t at) {
    return cells.begin() + static_cast<std::ptrdiff_t>(at);
  };
  if (!layout.bars && layout.has("RESERVATION") && cells.size() + 1 == count) {
    cells.insert(place(layout.find("RESERVATION")), std::string_view{});  // `sinfo -l` without any
  }
  const auto free = layout.free_text();
  if (free < count && cells.size() > count) {
    const auto first = place(free);
    const auto last = place(free + cells.size() - count);
    *first = {first->data(), static_cast<std::size_t>(last->data() + last->size() - first->data())};
    cells.erase(first + 1, last + 1);
  }
  for (auto& cell : cells) {
    cell = trim(cell);
  }
  const auto names = layout.find("NODELIST");
  const bool fits = cells.size() == count && (names == count || is_host_list(cells[names]));
  return fits ? std::optional{cells} : std::nullopt;
}

// The words that stand for a base and a flag hide whether some CPUs are in use: "draining" is
// ALLOCATED or MIXED, "completing" and, before 25.11, "fail" may be MIXED.
void refine(SlurmNodeRecord& record) {
  auto& state = record.state;
  const bool hides = state.has("DRAIN") || state.has("FAIL") || state.has("COMPLETING");
  if (hides && record.allocated_cpus.value_or(0) > 0 &&
      (state.base == "ALLOCATED" || state.base == "IDLE")) {
    state.base = *record.allocated_cpus < record.cpus.value_or(0) ? "MIXED" : "ALLOCATED";
  }
}

// What holds for one node only: sinfo prints sums and ranges for several.
void forget_sums(SlurmNodeRecord& record) {
  record.cpus = record.allocated_cpus = record.real_memory_mib = std::nullopt;
  record.allocated_memory_mib = record.free_memory_mib = std::nullopt;
  record.cpu_load.reset();
  record.hostname.clear();
}

// "Sat Nov 21 20:30:28 2026", over the tables of -l.
bool is_date(std::string_view line) {
  constexpr std::string_view kDays = "Mon Tue Wed Thu Fri Sat Sun ";
  return line.size() >= 20 && line.size() <= 40 && line[3] == ' ' &&
         kDays.find(line.substr(0, 4)) % 4 == 0 && std::count(line.begin(), line.end(), ':') == 2;
}

// A partition without nodes, of which nothing is learnt.
bool has_no_nodes(const Layout& layout, std::string_view line) {
  const Cells cells = cells_of(line, layout.bars);
  const auto state = layout.bars ? layout.find("STATE") : cells.size() - 1;  // no name behind it
  return layout.has("STATE") && state < cells.size() && trim(cells[state]) == "n/a";
}

class TableReader {
 public:
  std::optional<NodesAnswer> read(std::string_view text);

 private:
  void take_line(std::string_view line);
  void take_cells(const Cells& cells);
  void add(SlurmNodeRecord record);
  void note(std::string_view what) { out_.not_understood.push_back(excerpt(what)); }

  NodesAnswer out_;
  std::optional<Layout> layout_;
  bool may_begin_ = true;                      // whether the next line may be headings
  std::string cluster_;                        // "CLUSTER: name", with -M
  std::map<std::string, std::size_t> places_;  // in out_.nodes
  std::size_t expanded_ = 0;                   // names of host lists so far
};

std::optional<NodesAnswer> TableReader::read(std::string_view text) {
  out_.source = "sinfo";
  for (const auto line : split(text, '\n')) {
    take_line(trim(line));
  }
  return layout_ ? std::optional{std::move(out_)} : std::nullopt;
}

void TableReader::take_line(std::string_view line) {
  constexpr std::string_view kCluster = "CLUSTER: ";
  const bool may_begin = std::exchange(may_begin_, true) || !layout_;
  if (line.empty() || is_date(line)) {
    return;
  }
  if (line.starts_with(kCluster)) {
    cluster_ = text_value(line.substr(kCluster.size()));
    return;
  }
  may_begin_ = false;
  if (auto layout = layout_of(line)) {
    if (may_begin) {
      layout_ = std::move(layout);
    } else {
      note(line);  // a line of somebody's reason, say
    }
    return;
  }
  const auto cells = layout_ ? split_row(*layout_, line) : std::nullopt;
  if (cells) {
    take_cells(*cells);
  } else if (!layout_ || !has_no_nodes(*layout_, line)) {
    note(line);
  }
}

void TableReader::take_cells(const Cells& cells) {
  SlurmNodeRecord record;
  record.cluster = cluster_;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    layout_->columns[i]->set(cells[i], record);
    if (layout_->columns[i]->heading.starts_with("STATE") && !is_state(cells[i])) {
      note(fmt::format("State={}", cells[i]));
      if (!layout_->bars) {
        return;  // most likely an empty cell, and what stands here belongs to another column
      }
    }
  }
  if (!layout_->has("STATECOMPLETE")) {
    refine(record);
  }
  if (record.reason.empty()) {  // newer releases print "root" without a reason
    record.reason_user.clear();
    record.reason_time.reset();
  }
  record.cpu_load = reported_load(record.cpu_load, record.free_memory_mib);
  if (!layout_->has("NODELIST")) {
    add(std::move(record));
    return;
  }
  const auto names = expand_hostlist(record.name, kMaxNodes - std::min(kMaxNodes, expanded_));
  if (!names) {
    note(record.name);
    return;
  }
  expanded_ += names->size();
  if (names->size() > 1) {
    forget_sums(record);
  }
  for (const auto& name : *names) {
    record.name = name;
    add(record);
  }
}

void TableReader::add(SlurmNodeRecord record) {
  // With -M nodes of two clusters may have one name.
  const auto [at, is_new] =
      places_.try_emplace(record.cluster + '\n' + record.name, out_.nodes.size());
  if (is_new) {
    out_.nodes.push_back(std::move(record));
    return;
  }
  auto& known = out_.nodes[at->second];
  if (!(known.state == record.state)) {
    note(fmt::format("node '{}' has two states, {} and {}", known.name, known.state.raw(),
                     record.state.raw()));
  }
  for (auto& partition : record.partitions) {
    if (std::find(known.partitions.begin(), known.partitions.end(), partition) ==
        known.partitions.end()) {
      known.partitions.push_back(std::move(partition));
    }
  }
}

}  // namespace

std::optional<NodesAnswer> parse_sinfo_table(std::string_view text) {
  return TableReader{}.read(text);
}

}  // namespace slurmlet::slurm
