#include "slurm/answers/sinfo_capture.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "slurm/answers/sinfo_columns.h"
#include "slurm/answers/sinfo_rows.h"
#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using Lines = std::vector<std::string_view>;

bool is_dashes(std::string_view line) {
  line = trim(line);
  return line.size() >= 20 && line.find_first_not_of('-') == std::string_view::npos;
}

// `sinfo -l` leaves the column of reservations empty.
Layout without_reservation(Layout layout) {
  std::erase(layout.columns, Column::kReservation);
  return layout;
}

std::size_t first_row(const Lines& lines) {
  std::size_t at = 0;
  while (at < lines.size() && (is_between_rows(lines[at]) || !cluster_of_line(lines[at]).empty())) {
    ++at;
  }
  return at;
}

// State words alone, one per partition or per node.
bool take_words(const Lines& lines, std::size_t first, SinfoCapture& out) {
  std::vector<std::string_view> words;
  for (std::size_t i = first; i < lines.size(); ++i) {
    const auto word = trim(lines[i]);
    if (!word.empty() && !is_state(word)) {
      return false;
    }
    if (!word.empty() && words.size() < kMaxRowLines &&
        std::find(words.begin(), words.end(), word) == words.end()) {
      words.push_back(word);
    }
  }
  if (words.size() == 1) {
    out.nodes.emplace_back().state = parse_state(words.front());
    out.nodes.back().untold_states = hidden_by(words.front());
  }
  for (std::size_t i = 0; words.size() > 1 && i < words.size(); ++i) {
    out.not_understood.push_back(fmt::format("a state of an unnamed node: {}", words[i]));
  }
  return !words.empty();
}

// The settings that -v prints over the answer end with a second or third line of dashes; they name
// the node that was asked about.
std::size_t skip_settings(const Lines& lines, std::string& node) {
  std::size_t begin = 0;
  if (lines.empty() || !is_dashes(lines.front())) {
    return begin;
  }
  for (std::size_t i = 0; i < lines.size() && i < 200; ++i) {
    const auto equals = lines[i].find('=');
    if (is_dashes(lines[i])) {
      begin = i + 1;
    } else if (equals == std::string_view::npos) {
      break;
    } else if (trim(lines[i].substr(0, equals)) == "nodes") {
      node = text_value(lines[i].substr(equals + 1));
    }
  }
  return begin;
}

bool recognise(const Lines& lines, SinfoCapture& out) {
  const auto first = first_row(lines);
  if (first == lines.size()) {
    return false;
  }
  if (const auto headings = layout_of_headings(lines[first])) {
    const auto row = first + 1;
    const auto shorter = without_reservation(*headings);
    const bool is_shorter = row < lines.size() && !first_row_fits(*headings, lines, row) &&
                            first_row_fits(shorter, lines, row);
    SinfoRows{out}.read(is_shorter ? shorter : *headings, lines, 0);
    return true;
  }
  if (take_words(lines, first, out)) {
    return true;
  }
  auto layout = recognise_layout(lines, first);
  if (!layout) {
    layout = guess_layout(lines[first], out.not_understood);
  }
  if (layout) {
    SinfoRows{out}.read(*layout, lines, 0);
  }
  return layout.has_value();
}

}  // namespace

std::optional<SinfoCapture> parse_sinfo_capture(std::string_view text) {
  SinfoCapture out;
  auto lines = split(text, '\n');
  std::string asked;
  const auto begin = skip_settings(lines, asked);
  lines.erase(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(begin));
  if (!recognise(lines, out)) {
    return std::nullopt;
  }
  if (out.nodes.size() == 1 && out.nodes.front().name.empty() && fits(Column::kNode, asked)) {
    out.nodes.front().name = asked;
  }
  return out;
}

}  // namespace slurmlet::slurm
