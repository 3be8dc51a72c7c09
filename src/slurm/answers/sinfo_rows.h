#pragma once

// The rows of sinfo's outputs made node records: one per node, however many rows it has. Only
// sinfo_capture.cpp uses this. Not thread-safe.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/answers/sinfo_capture.h"
#include "slurm/answers/sinfo_columns.h"

namespace slurmlet::slurm {

class SinfoRows {
 public:
  explicit SinfoRows(SinfoCapture& out) : out_(out) {}

  // All rows from line `first` on; what is no row goes to not_understood.
  void read(const Layout& layout, const std::vector<std::string_view>& lines, std::size_t first);

 private:
  void take_row(const Layout& layout, std::string_view row);
  void take_cells(const Layout& layout, const Cells& cells);
  void take_state(const Layout& layout, const Cells& cells, node::SlurmNodeRecord& record);
  void add(const std::string& hosts, node::SlurmNodeRecord record);
  void add_node(const std::string& name, node::SlurmNodeRecord record);
  void note(std::string_view what);

  SinfoCapture& out_;
  std::map<std::string, std::size_t> places_;  // in out_.nodes
  std::size_t expanded_ = 0;                   // names of host lists so far
};

// Lines between rows: empty ones, and the date over the tables of -l.
bool is_between_rows(std::string_view line);

// "CLUSTER: name", with -M; "" for other lines.
std::string cluster_of_line(std::string_view line);

}  // namespace slurmlet::slurm
