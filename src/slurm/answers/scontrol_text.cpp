#include "slurm/answers/scontrol_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "slurm/answers/scontrol_fields.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

struct Pair {
  std::string_view key;
  std::string_view value;
};

// One node's text, taken apart but not yet understood.
struct Record {
  std::vector<Pair> pairs;               // but for free text
  std::string reason, comment, extra;    // free text, lines joined by "\n"
  std::string_view attribution;          // of the reason, with its brackets
  std::vector<std::string_view> strays;  // words that belong to no key
  std::set<std::string_view> seen;       // keys
  std::string_view last_word;            // of what is not free text
};

constexpr std::string_view kSpace = " \t\r\n";

std::size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

// "Key" of "Key=value"; "" when the text begins with no key.
std::string_view key_at(std::string_view text) {
  const auto end = text.substr(0, 48).find('=');
  const auto key = text.substr(0, end == std::string_view::npos ? 0 : end);
  return is_key_shaped(key) ? key : std::string_view{};
}

// Lines without their "\n" or "\r\n".
std::vector<std::string_view> lines_of(std::string_view text) {
  auto lines = split(text, '\n');
  for (auto& line : lines) {
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
  }
  return lines;
}

// "NodeName=cpu01 Arch=x86_64 CoresPerSocket=8": the first line of a node, or all of -o. A line of
// slurm.conf and of `slurmd -C` has "CPUs" or "Sockets" there instead.
bool begins_record(std::string_view line) {
  line = before_free_text(trim(line));
  if (!line.starts_with("NodeName=")) {
    return false;
  }
  const bool has_key = line.find(" CoresPerSocket=") != std::string_view::npos ||
                       line.find(" Arch=") != std::string_view::npos ||
                       line.find(" CpuBind=") != std::string_view::npos;
  return has_key && line.find(" CPUs=") == std::string_view::npos &&
         (line.find(" Sockets=") == std::string_view::npos ||
          line.find(" CPUTot=") != std::string_view::npos);
}

// Cut off within the first line.
bool begins_cut_record(std::string_view line) {
  line = trim(line);
  return line.starts_with("NodeName=") && line.find_first_of(" =", 9) == std::string_view::npos;
}

std::string_view unknown_node(std::string_view line) {
  constexpr std::string_view kBefore = "Node ";
  constexpr std::string_view kBehind = " not found";
  line = trim(line);
  if (!line.starts_with(kBefore) || !line.ends_with(kBehind) ||
      line.size() <= kBefore.size() + kBehind.size()) {
    return {};
  }
  line.remove_prefix(kBefore.size());
  line.remove_suffix(kBehind.size());
  return line.find(' ') == std::string_view::npos ? line : std::string_view{};
}

void take_free_text(std::string_view key, std::string_view text, Record& record) {
  auto& value = key == "Reason" ? record.reason : key == "Comment" ? record.comment : record.extra;
  value += text;
}

// Takes pairs from the text up to free text, and gives back the rest: that free text, or "".
std::string_view take_pairs(std::string_view text, Record& record) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    if (text.empty()) {
      return text;
    }
    const auto key = key_at(text);
    if (is_free_text_key(key) && !record.seen.contains(key)) {
      return text;
    }
    auto end = std::min(text.find_first_of(kSpace), text.size());
    if (key == "OS") {  // "Linux 6.18 #1 SMP", alone in its line unless all is one line
      end = std::min(text.find(" RealMemory="), text.size());
    }
    record.last_word = text.substr(0, end);
    if (key.empty() || !record.seen.insert(key).second) {
      record.strays.push_back(record.last_word);
    } else {
      record.pairs.push_back({key, record.last_word.substr(key.size() + 1)});
    }
    text.remove_prefix(end);
  }
}

// Splits "text [root@time]" off its attribution, if it ends with one.
std::string_view without_attribution(std::string_view text, Record& record) {
  const auto trimmed = trim(text);
  const auto open = trimmed.rfind('[');
  if (open == std::string_view::npos || !is_attribution(trimmed.substr(open))) {
    return text;
  }
  record.attribution = trimmed.substr(open);
  return trim(trimmed.substr(0, open));
}

// Where another key begins behind free text in one line: after exactly one space, because further
// lines of a reason have eight in front.
std::size_t next_key(std::string_view text, const Record& record) {
  for (auto at = text.find(' '); at != std::string_view::npos; at = text.find(' ', at + 1)) {
    const bool one_space = at == 0 || (text[at - 1] != ' ' && text[at - 1] != '\t');
    const auto key = one_space ? key_at(text.substr(at + 1)) : std::string_view{};
    if (!key.empty() && is_tail_key(key) && !record.seen.contains(key)) {
      return at;
    }
  }
  return text.size();
}

constexpr std::string_view kOneLineGap = "        ";  // before a further line of a reason

// The end of the first line of a reason in one line: behind the attribution, which another key, a
// further line or nothing follows.
std::size_t first_line_end(std::string_view text, const Record& record) {
  for (auto open = text.find('['); open != std::string_view::npos;
       open = text.find('[', open + 1)) {
    const auto close = text.substr(open, 300).find(']');
    if (close == std::string_view::npos || !is_attribution(text.substr(open, close + 1))) {
      continue;
    }
    const auto end = open + close + 1;
    const auto rest = text.substr(end);
    if (trim(rest).empty() || rest.starts_with(kOneLineGap) ||
        next_key(rest.substr(0, 50), record) == 0) {
      return end;
    }
  }
  return next_key(text, record);
}

// Free text in one line, up to the next key; gives back the rest.
std::string_view take_free_text_inline(std::string_view text, Record& record) {
  const auto key = key_at(text);
  record.seen.insert(key);
  text.remove_prefix(key.size() + 1);
  std::size_t end = 0;
  if (key == "Reason") {
    const auto first = first_line_end(text, record);
    take_free_text(key, without_attribution(text.substr(0, first), record), record);
    end = first + next_key(text.substr(first), record);
    auto more = text.substr(first, end - first);
    while (more.starts_with(kOneLineGap)) {
      more.remove_prefix(kOneLineGap.size());
      const auto line = more.substr(0, more.find(kOneLineGap));
      take_free_text(key, "\n", record);
      take_free_text(key, line, record);
      more.remove_prefix(line.size());
    }
  } else {
    end = next_key(text, record);
    take_free_text(key, text.substr(0, end), record);
  }
  return text.substr(end);
}

void take_one_line(std::string_view text, Record& record) {
  while (!(text = take_pairs(text, record)).empty()) {
    text = take_free_text_inline(text, record);
  }
}

// The lines of one node, the first one without "NodeName=" taken.
void take_lines(const std::vector<std::string_view>& lines, Record& record) {
  take_one_line(lines.front(), record);
  const auto key_indent = lines.size() > 1 ? indentation(lines[1]) : 0;
  std::string_view free_key;  // whose text goes on
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto line = lines[i];
    const auto indent = indentation(line);
    const auto key = indent == key_indent ? key_at(line.substr(indent)) : std::string_view{};
    const bool new_key = !key.empty() && !record.seen.contains(key) &&
                         (free_key.empty() || is_tail_key(key) || !is_known_key(key));
    if (new_key && is_free_text_key(key)) {
      free_key = key;
      record.seen.insert(key);
      const auto text = line.substr(indent + key.size() + 1);
      take_free_text(key, key == "Reason" ? without_attribution(text, record) : text, record);
    } else if (new_key || free_key.empty()) {
      free_key = {};
      take_one_line(line, record);
    } else {
      // A further line of a reason stands seven columns further in.
      const auto text = free_key == "Reason" ? line.substr(std::min(indent, key_indent + 7)) : line;
      take_free_text(free_key, "\n", record);
      take_free_text(free_key, text, record);
    }
  }
}

class NodesReader {
 public:
  explicit NodesReader(NodesAnswer& out) : out_(out) {}

  // `cut` when nothing, not even a line break, follows the record.
  void read(const std::vector<std::string_view>& lines, bool cut) {
    Record text;
    if (lines.front().find(" CPUAlloc=") != std::string_view::npos) {
      // All in one line; line breaks in a comment are the only others.
      const auto* begin = lines.front().data();
      take_one_line(
          {begin, static_cast<std::size_t>(lines.back().data() + lines.back().size() - begin)},
          text);
    } else {
      take_lines(lines, text);
    }
    drop_cut_pair(lines.back(), cut, text);
    node::SlurmNodeRecord record;
    for (const auto& pair : text.pairs) {
      if (!is_known_key(pair.key) || !take_field(pair.key, pair.value, record)) {
        note(text, fmt::format("{}={}", pair.key, excerpt(pair.value)));
      }
    }
    take_field("Reason", text.reason, record);
    take_field("Comment", text.comment, record);
    take_field("Extra", text.extra, record);
    if (!record.reason.empty() && !text.attribution.empty() &&
        !take_attribution(text.attribution, record)) {
      note(text, fmt::format("the time of the reason, {}", excerpt(text.attribution)));
    }
    for (const auto stray : text.strays) {
      note(text, excerpt(stray));
    }
    record.cpu_load = reported_load(record.cpu_load, record.free_memory_mib);
    note_missing(cut, text);
    if (!record.name.empty()) {
      out_.nodes.push_back(std::move(record));
    }
  }

 private:
  void note(const Record& text, const std::string& what) {
    const bool named = !text.pairs.empty() && text.pairs.front().key == "NodeName";
    out_.not_understood.push_back(
        fmt::format("NodeName={}: {}", named ? excerpt(text.pairs.front().value) : "?", what));
  }

  // When the text ends within what every release prints, its last word may lack its end.
  void drop_cut_pair(std::string_view last_line, bool cut, Record& text) {
    const bool whole = text.seen.contains("AveWatts") || text.seen.contains("Reason") ||
                       text.seen.contains("Comment") || text.seen.contains("Extra");
    if (!cut || whole || text.last_word.empty() || !last_line.ends_with(text.last_word)) {
      return;
    }
    const auto word = text.last_word;
    if (!text.strays.empty() && text.strays.back().data() == word.data()) {
      text.strays.pop_back();
    } else {
      text.seen.erase(text.pairs.back().key);
      text.pairs.pop_back();
    }
    note(text, fmt::format("cut off at {}", excerpt(word)));
  }

  void note_missing(bool cut, const Record& text) {
    if (!text.seen.contains("State")) {
      note(text, "no State");
    }
    if (!text.seen.contains("AllocTRES")) {
      note(text, "the record is not complete");
    }
    if (cut && !text.reason.empty() && text.attribution.empty()) {
      note(text, "the reason is not signed, it may be cut off");
    }
  }

  NodesAnswer& out_;
};

// Whether a line that begins no record may go on with the one before it: an empty line ends the
// long form, a line break the short one, unless an administrator's text has one.
bool continues(const std::vector<std::string_view>& record, std::string_view line) {
  const auto first = record.front();
  if (first.find(" CPUAlloc=") != std::string_view::npos) {
    return trim(line).empty() || first.find(" Comment=") != std::string_view::npos ||
           first.find(" Extra=") != std::string_view::npos;
  }
  return !record.back().empty() || line.empty() || indentation(line) > indentation(first);
}

// Lines of scontrol that are about no node.
bool is_heading(std::string_view line) {
  line = trim(line);
  return line.empty() || line.starts_with("Node data as of ") ||
         line.starts_with("last_update_time=");
}

void take_unknown_nodes(std::vector<std::string> unknown, NodesAnswer& out) {
  if (out.nodes.empty() && !unknown.empty()) {
    out.failure = QueryFailure{node::SlurmFailure::kNotInSlurm, unknown.front()};
    unknown.erase(unknown.begin());
  }
  out.not_understood.insert(out.not_understood.end(), unknown.begin(), unknown.end());
}

}  // namespace

NodesAnswer parse_scontrol_nodes(std::string_view text) {
  NodesAnswer out;
  NodesReader reader{out};
  const auto lines = lines_of(text);
  std::vector<std::string_view> record;
  std::size_t indent = 0;
  std::vector<std::string> unknown;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto line = lines[i];
    const bool first = out.nodes.empty() && record.empty();
    const bool begins = begins_record(line) || (i + 1 == lines.size() && begins_cut_record(line));
    if (begins && (first || indentation(line) == indent)) {
      if (!record.empty()) {
        reader.read(record, false);
      }
      indent = indentation(line);
      record = {line};
    } else if (const auto name = unknown_node(line); !name.empty()) {
      unknown.push_back(fmt::format("Node {} not found", excerpt(name)));
    } else if (!record.empty() && continues(record, line)) {
      record.push_back(line);
    } else if (trim(line) == "No nodes in the system") {
      unknown.emplace_back("No nodes in the system");
    } else if (!is_heading(line)) {
      out.not_understood.push_back(excerpt(line));
    }
  }
  if (!record.empty()) {
    reader.read(record, true);
  }
  take_unknown_nodes(std::move(unknown), out);
  return out;
}

}  // namespace slurmlet::slurm
