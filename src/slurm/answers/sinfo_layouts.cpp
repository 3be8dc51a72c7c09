#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "slurm/answers/sinfo_columns.h"
#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

// Forms without headings that are known as a whole.
const std::vector<Layout>& known_layouts() {
  using enum Column;
  static const std::vector<Layout> kLayouts{
      // The query of slurmlet (sinfo.cpp).
      {{kNode, kPartition, kState, kCpuCounts, kMemory, kAllocMem, kFreeMem, kLoad, kGres,
        kGresUsed, kVersion, kFeatures, kActiveFeatures, kCluster, kReservation, kTimestamp, kUser,
        kCommentReason},
       true,
       true},
      // The query of slurmlet 0.1, and the same without partition, features and cluster.
      {{kNode, kPartition, kState, kCpuCounts, kMemory, kAllocMem, kFreeMem, kLoad, kGres,
        kGresUsed, kVersion, kFeatures, kCluster, kTimestamp, kUser, kReason},
       true,
       true},
      {{kNode, kState, kCpuCounts, kMemory, kAllocMem, kFreeMem, kLoad, kGres, kGresUsed, kVersion,
        kTimestamp, kUser, kReason},
       true,
       true},
      // NodeList,StateLong,StateCompact,CPUsState,Memory,FreeMem,AllocMem,Gres,GresUsed,Reason,
      // Timestamp,User
      {{kNode, kState, kState, kCpuCounts, kMemory, kFreeMem, kAllocMem, kGres, kGresUsed, kReason,
        kTimestamp, kUser},
       true,
       true},
      {{kNode, kReason, kKnownState}, true, true},  // NodeList,Reason,StateComplete
      // %N|%T|%t|%C|%m|%e|%G|%E|%H|%u|%O|%R
      {{kNode, kKnownState, kKnownState, kCpuCounts, kMemory, kFreeMem, kGres, kReason, kTimestamp,
        kUser, kLoad, kPartition},
       true,
       false},
      // The tables: sinfo -N -l, sinfo -N, sinfo -l (with and without a reservation), sinfo.
      {{kNode, kNodeCount, kPartition, kKnownState, kNumber, kSizes, kMemory, kNumber, kNumber,
        kFeatures, kReason},
       false,
       false},
      {{kNode, kNodeCount, kPartition, kKnownState}, false, false},
      {{kPartition, kAvail, kTimeLimit, kUnused, kUnused, kUnused, kUnused, kNodeCount, kKnownState,
        kNode},
       false,
       false},
      {{kPartition, kAvail, kTimeLimit, kUnused, kUnused, kUnused, kUnused, kNodeCount, kKnownState,
        kReservation, kNode},
       false,
       false},
      {{kPartition, kAvail, kTimeLimit, kNodeCount, kKnownState, kNode}, false, false},
  };
  return kLayouts;
}

bool is_version(std::string_view cell) {
  return cell.size() >= 7 && cell.size() <= 24 && std::isdigit(cell[0]) != 0 &&
         std::isdigit(cell[1]) != 0 && cell[2] == '.' && std::isdigit(cell[3]) != 0 &&
         std::isdigit(cell[4]) != 0 && cell[5] == '.';
}

// A name of a host, which a partition's or a user's may be as well, has a digit and a letter.
bool may_be_node(std::string_view cell) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  return fits(Column::kNode, cell) && std::any_of(cell.begin(), cell.end(), is_letter) &&
         std::any_of(cell.begin(), cell.end(), is_digit) && !is_state(cell) && !is_version(cell) &&
         !time_value(cell);
}

// What a column must be, by the cells of the first row.
Column guess(std::string_view cell, bool bar_at_end) {
  if (fits(Column::kKnownState, cell)) {
    return Column::kKnownState;
  }
  if (cpu_counts(cell)) {
    return Column::kCpuCounts;
  }
  if (is_version(cell)) {
    return Column::kVersion;
  }
  const bool is_gpu = cell.starts_with("gpu:");
  if (is_gpu && cell.find("(IDX:") != std::string_view::npos) {
    return Column::kGresUsed;
  }
  if (is_gpu && !bar_at_end) {  // -o has no GresUsed
    return Column::kGres;
  }
  return may_be_node(cell) ? Column::kNode : Column::kUnused;
}

// The cells of a line of which nothing is known but what is between them.
Cells guess_cells(std::string_view line, bool bars) {
  Cells cells;
  for (const auto cell : split(line, bars ? '|' : ' ')) {
    if (bars || !trim(cell).empty()) {
      cells.push_back(trim(cell));
    }
  }
  return cells;
}

void note_guess(const Layout& layout, const Cells& cells, std::vector<std::string>& notes) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (layout.columns[i] == Column::kNode) {
      notes.push_back(fmt::format("the columns have no headings; '{}' is taken as the node name",
                                  excerpt(cells[i])));
    } else if (layout.columns[i] == Column::kUnused && !is_nothing(cells[i])) {
      notes.push_back(fmt::format("column {}: {}", i + 1, excerpt(cells[i])));
    }
  }
}

}  // namespace

bool first_row_fits(const Layout& layout, const std::vector<std::string_view>& lines,
                    std::size_t first) {
  const bool may_go_on = layout.free_text() < layout.columns.size();
  const auto end = std::min(lines.size(), first + (may_go_on ? kMaxRowLines : 1));
  for (std::size_t last = first; last < end; ++last) {
    const auto* begin = lines[first].data();
    const auto* behind = lines[last].data() + lines[last].size();
    if (split_row(layout, {begin, static_cast<std::size_t>(behind - begin)})) {
      return begins_row(layout, lines[first]);
    }
  }
  return false;
}

std::optional<Layout> recognise_layout(const std::vector<std::string_view>& lines,
                                       std::size_t first) {
  const auto& known = known_layouts();
  const auto at = std::find_if(known.begin(), known.end(), [&](const Layout& layout) {
    return first_row_fits(layout, lines, first);
  });
  return at == known.end() ? std::nullopt : std::optional{*at};
}

std::optional<Layout> guess_layout(std::string_view line, std::vector<std::string>& notes) {
  line = trim(line);
  Layout layout;
  layout.bars = line.find('|') != std::string_view::npos;
  layout.bar_at_end = line.ends_with('|');
  if (layout.bar_at_end) {
    line.remove_suffix(1);
  }
  const auto cells = guess_cells(line, layout.bars);
  if (cells.size() < 2 || cells.size() > 60) {
    return std::nullopt;
  }
  for (const auto cell : cells) {
    layout.columns.push_back(guess(cell, layout.bar_at_end));
  }
  const auto count = [&](Column column) {
    return std::count(layout.columns.begin(), layout.columns.end(), column);
  };
  const bool tells = count(Column::kKnownState) > 0 && count(Column::kNode) > 0;
  // Between bars it is no prose; words in a line may be.
  if (!tells || (!layout.bars && count(Column::kUnused) > 0)) {
    return std::nullopt;
  }
  const auto forget = [&](Column column) {
    std::replace(layout.columns.begin(), layout.columns.end(), column, Column::kUnused);
  };
  if (count(Column::kNode) > 1) {  // one of them is a partition, a host name, …
    forget(Column::kNode);
  }
  // Of nodes there are such counts as well (%F): of one node never more than one.
  const bool are_cpus = count(Column::kNode) == 1 && count(Column::kCpuCounts) == 1 &&
                        std::none_of(cells.begin(), cells.end(), [](std::string_view cell) {
                          const auto counts = cpu_counts(cell);
                          return counts && counts->total <= 1;
                        });
  if (!are_cpus || line.find('[') != std::string_view::npos) {
    forget(Column::kCpuCounts);
  }
  note_guess(layout, cells, notes);
  return layout;
}

}  // namespace slurmlet::slurm
