#pragma once

// The columns of sinfo's outputs: their headings, what may stand in them, and how a row is split
// into them. Only sinfo_capture.cpp uses this. Pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slurmlet::slurm {

enum class Column {
  kNode,        // a node name or a host list
  kPartition,   // with "*" behind the default one
  kState,       // any of the three forms of a state, of words that may not be known
  kKnownState,  // of words that are known, where nothing else says that this is the state
  kCpuCounts,   // allocated/idle/other/total
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
  kTimestamp,
  kUser,
  kReason,
  kComment,
  kExtra,
  kCommentReason,  // of our own query (sinfo.h): both, with a unit separator between them
  kHostname,
  kReservation,  // may be empty
  kNodeCount,
  kAvail,
  kTimeLimit,
  kNumber,  // a number that is not used here
  kSizes,   // sockets:cores:threads
  kUnused,
};

// "CPUS(A/I/O/T)" → kCpuCounts; also when cut to the width of its column ("AVAIL_FE").
std::optional<Column> column_of_heading(std::string_view heading);

// Whether the text can stand in the column.
bool fits(Column column, std::string_view cell);

struct Layout {
  std::vector<Column> columns;
  bool bars = false;        // "|" between the columns, else white space
  bool bar_at_end = false;  // and behind the last one (-O "Field:|")

  // The column that may hold anything; columns.size() without one.
  std::size_t free_text() const;
};

using Cells = std::vector<std::string_view>;  // as many as there are columns

// The columns that a line of headings names; nothing when it is no such line.
std::optional<Layout> layout_of_headings(std::string_view line);

// The cells of one whole row, which may be of several lines; nothing when they do not fit.
std::optional<Cells> split_row(const Layout& layout, std::string_view row);

// Whether a row may begin with this line: the columns before the free text fit.
bool begins_row(const Layout& layout, std::string_view line);

// A reason may be of several lines; more than these are none.
inline constexpr std::size_t kMaxRowLines = 64;

// Whether the lines from `first` on begin with a row of this layout.
bool first_row_fits(const Layout& layout, const std::vector<std::string_view>& lines,
                    std::size_t first);

// The layout, of those in common use, that the first row fits.
std::optional<Layout> recognise_layout(const std::vector<std::string_view>& lines,
                                       std::size_t first);

// The layout that the content of a row leaves no doubt of: nothing without a state beside what may
// be a node. What stays unknown goes to `notes`.
std::optional<Layout> guess_layout(std::string_view line, std::vector<std::string>& notes);

}  // namespace slurmlet::slurm
