#include "slurm/answers/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "slurm/answers/node_json.h"
#include "slurm/answers/scontrol_text.h"
#include "slurm/answers/sinfo.h"
#include "slurm/answers/sinfo_table.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;

constexpr std::size_t kMaxNotes = 100;

constexpr const char* kAccepted =
    "no output of Slurm that can be parsed; accepted are, whole and each alone: 'scontrol show "
    "node NAME' (also -d, -o, --json), 'sinfo -N -n NAME -o "
    "\"%N|%T|%C|%m|%e|%O|%G|%R|%u|%H|%E\"' or another sinfo with its headings (no -h) or with "
    "--json, 'curl -si' of slurmrestd's /node/NAME, 'scontrol show slurmd', and their error "
    "messages";

QueryFailure capture_garbage(std::string detail) {
  return {SlurmFailure::kGarbage, std::move(detail)};
}

// Where the first line begins that begins with `start`; npos without one.
std::size_t find_line(std::string_view text, std::string_view start) {
  const auto at = text.find("\n" + std::string{start});
  return text.starts_with(start) ? 0 : at == std::string_view::npos ? at : at + 1;
}

bool take_scontrol(std::string_view text, Capture& out) {
  if (!looks_like_scontrol_nodes(text)) {
    return false;
  }
  static_cast<NodesAnswer&>(out) = parse_scontrol_nodes(text);
  if (out.nodes.empty() && !out.failure) {
    out.failure = capture_garbage("no node record is complete enough to be parsed");
  }
  return true;
}

bool take_slurmd(std::string_view text, Capture& out) {
  if (!looks_like_slurmd_status(text)) {
    return false;
  }
  out.source = "scontrol show slurmd";
  out.slurmd = parse_slurmd_status(text);
  out.slurm_version = out.slurmd->version;
  out.not_understood = out.slurmd->not_understood;
  return true;
}

// The daemon's own query, about the node that its first row names.
bool take_sinfo(std::string_view text, Capture& out) {
  auto record = parse_sinfo(text, text.substr(0, text.find('|')));
  if (!record) {
    return false;
  }
  out.source = "sinfo";
  out.nodes.push_back(*std::move(record));
  return true;
}

bool take_sinfo_table(std::string_view text, Capture& out) {
  auto table = parse_sinfo_table(text);
  if (!table) {
    return false;
  }
  static_cast<NodesAnswer&>(out) = *std::move(table);
  if (out.nodes.empty() && out.not_understood.empty()) {
    out.failure = QueryFailure{SlurmFailure::kNotInSlurm, "sinfo printed its headings but no node"};
  } else if (out.nodes.empty()) {
    out.failure = capture_garbage("sinfo printed no row that can be parsed");
  }
  return true;
}

// Leaves the body of the heads that `curl -i` prints: those of "100 Continue", of a proxy's tunnel
// and of redirections come before the answer's own. A head that is cut off has no body. Gives back
// the last status, 0 without any.
int take_http_heads(std::string_view& text) {
  int status = 0;
  while (text.starts_with("HTTP/")) {
    const auto line = text.substr(0, text.find('\n'));
    const auto space = std::min(line.find(' '), line.size() - 1);
    constexpr int kLowest = 100;
    status = parse_int<int>(line.substr(space + 1, 3)).value_or(0);
    status = status < kLowest ? 0 : status;
    const auto end = text.find("\n\n");
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 2);
  }
  return status;
}

// A JSON document or an HTTP answer, at the beginning of any line.
bool take_document(std::string_view text, Capture& out) {
  const auto at = std::min(find_line(text, "HTTP/"), find_line(text, "{"));
  if (at == std::string_view::npos) {
    return false;
  }
  std::vector<std::string> before;
  for (const auto line : split(text.substr(0, at), '\n')) {
    if (!trim(line).empty()) {
      before.push_back(excerpt(trim(line)));
    }
  }
  text = text.substr(at);
  out.http_status = take_http_heads(text);
  static_cast<NodesAnswer&>(out) = parse_nodes_json(text, out.http_status);
  out.not_understood.insert(out.not_understood.begin(), before.begin(), before.end());
  const bool refused =
      contains(text, "Authentication failure") || contains(text, "Unable find requested URL");
  out.source = refused ? "slurmrestd" : out.source;
  return true;
}

bool take_messages(std::string_view text, Capture& out) {
  constexpr std::size_t kLongest = 4096;
  auto known = text.size() > kLongest ? std::nullopt : known_failure(text);
  if (!known) {
    return false;
  }
  out.source = "error message";
  if (contains(text, "slurm_load_slurmd_status")) {
    out.slurmd_failure = std::move(known->detail);
  } else {
    out.failure = std::move(known);
  }
  return true;
}

void recognise(std::string_view text, Capture& out) {
  if (trim(text).empty()) {
    out.failure = capture_garbage(
        "the capture is empty; sinfo prints nothing about a node that Slurm does not know or that "
        "is in no partition, which looks the same as an empty file");
  } else if (!take_scontrol(text, out) && !take_slurmd(text, out) && !take_sinfo(text, out) &&
             !take_sinfo_table(text, out) && !take_document(text, out) &&
             !take_messages(text, out)) {
    out.failure = capture_garbage(kAccepted);
    out.not_understood.push_back(excerpt(trim(text).substr(0, trim(text).find('\n'))));
  }
}

}  // namespace

Capture parse_capture(std::string_view text) {
  Capture out;
  std::string lines{text};
  std::erase(lines, '\r');
  recognise(lines, out);
  if (out.not_understood.size() > kMaxNotes) {
    const auto more = out.not_understood.size() - kMaxNotes;
    out.not_understood.resize(kMaxNotes);
    out.not_understood.push_back(fmt::format("and {} more", more));
  }
  return out;
}

}  // namespace slurmlet::slurm
