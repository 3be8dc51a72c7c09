#include "slurm/answers/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "slurm/answers/capture_text.h"
#include "slurm/answers/node_json.h"
#include "slurm/answers/scontrol_text.h"
#include "slurm/answers/sinfo.h"
#include "slurm/answers/sinfo_capture.h"
#include "slurm/answers/slurmd_status.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using Json = nlohmann::json;
using node::SlurmFailure;

constexpr std::size_t kMaxNotes = 100;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

const Json& member(const Json& json, const char* key) {
  static const Json kNothing;
  const auto at = json.is_object() ? json.find(key) : json.end();
  return at == json.end() ? kNothing : *at;
}

std::string text_of(const Json& json) {
  return json.is_string() ? json.get<std::string>() : std::string{};
}

// "meta" and "pings" of a document, without the nodes, which may be thousands; null when it is no
// whole document.
Json read_outline(std::string_view text) {
  const auto keep = [](int depth, Json::parse_event_t event, Json& parsed) {
    return event != Json::parse_event_t::key || depth != 1 || parsed == "meta" || parsed == "pings";
  };
  auto json = Json::parse(text, keep, false);
  return json.is_object() ? json : Json{};
}

// Who wrote a document: slurmrestd names its plugin "openapi/…" or its client, a command itself
// (command: ["show", "node"], ["sinfo", "--json"]). A document that is cut off has the same words.
std::string origin_of(const Json& outline, std::string_view text) {
  const auto& meta = member(outline, "meta");
  if (!meta.is_object()) {
    return contains(text, "\"openapi")   ? "slurmrestd"
           : contains(text, "\"sinfo\"") ? "sinfo --json"
           : contains(text, "\"show\"")  ? "scontrol show node --json"
                                         : "unknown";
  }
  const auto& command = member(meta, "command");
  const auto first = command.is_array() && !command.empty() ? text_of(command.front()) : "";
  if (contains(first, "sinfo")) {
    return "sinfo --json";
  }
  if (first == "ping") {
    return "scontrol ping";
  }
  if (text_of(member(member(meta, "plugin"), "type")).starts_with("openapi/") ||
      !text_of(member(member(meta, "client"), "source")).empty()) {
    return "slurmrestd";
  }
  // From 24.05 on, what else a command of scontrol was is not told.
  return member(outline, "pings").is_array() ? "scontrol ping" : "scontrol show node --json";
}

// What `ping` says of the controllers, in words; a failure when none of them answers. Without munge
// it says DOWN as well.
void take_pings(const std::vector<std::string>& up, const std::vector<std::string>& down,
                Capture& out) {
  if (up.empty() && !down.empty()) {
    out.failure = QueryFailure{SlurmFailure::kControllerUnreachable,
                               fmt::format("slurmctld at {} is DOWN", down.front())};
  }
  for (const auto& host : up) {
    out.not_understood.push_back(
        fmt::format("slurmctld at {} is UP, which says nothing about a node", excerpt(host)));
  }
}

void take_json_pings(const Json& pings, Capture& out) {
  std::vector<std::string> up;
  std::vector<std::string> down;
  for (const auto& ping : pings) {
    const auto word = text_of(member(ping, "pinged")) + text_of(member(ping, "ping"));
    (word == "UP" ? up : down).push_back(excerpt(text_of(member(ping, "hostname"))));
  }
  take_pings(up, down, out);
}

void take_json(std::string_view text, Capture& out) {
  auto answer = parse_nodes_json(text, out.http_status);
  const auto outline = read_outline(text);
  out.source = origin_of(outline, text);
  out.api_version = std::move(answer.api_version);
  out.slurm_version = std::move(answer.slurm_version);
  out.cluster = std::move(answer.cluster);
  if (const auto& pings = member(outline, "pings"); pings.is_array() && !pings.empty()) {
    take_json_pings(pings, out);
    return;
  }
  out.nodes = std::move(answer.nodes);
  out.failure = std::move(answer.failure);
  out.not_understood = std::move(answer.not_understood);
}

QueryFailure garbage(std::string detail) { return {SlurmFailure::kGarbage, std::move(detail)}; }

// What slurmrestd says without JSON, with the status that goes with it; 0 for other text.
int rest_text_status(std::string_view text) {
  return trim(text) == "Authentication failure"        ? 401
         : contains(text, "Unable find requested URL") ? 404
                                                       : 0;
}

void take_plain_rest(std::string_view body, int status, Capture& out) {
  auto answer = parse_nodes_json(body, status);
  out.source = "slurmrestd";
  out.failure = std::move(answer.failure);
  out.not_understood = std::move(answer.not_understood);
}

// A log line begins with "[" as well.
bool is_json(std::string_view text) {
  const auto start = trim(text);
  const auto next = trim(start.substr(std::min<std::size_t>(1, start.size())).substr(0, 256));
  return start.starts_with('{') ||
         (start.starts_with('[') && (next.starts_with('{') || next.starts_with('"')));
}

bool is_web_page(std::string_view text) {
  const auto start = to_lower(trim(text).substr(0, 64));
  return start.starts_with("<!doctype") || start.starts_with("<html") || start.starts_with("<?xml");
}

void take_http(std::string_view body, Capture& out) {
  const auto nothing = trim(body).empty();
  if (is_json(body)) {
    take_json(body, out);
  } else if (rest_text_status(body) != 0 || (nothing && out.http_status == 304)) {
    take_plain_rest(body, out.http_status, out);
  } else if (nothing) {
    out.failure = garbage(fmt::format("an HTTP answer {} without a body", out.http_status));
  } else if (contains(body, "index of endpoints")) {
    out.failure = garbage("a daemon's own HTTP pages, which say nothing about a node");
  } else {
    out.failure = parse_nodes_json(body, out.http_status).failure;
    out.not_understood.push_back(excerpt(trim(body)));
  }
}

// The cause that Slurm's messages tell.
QueryFailure classify_messages(const std::vector<std::string_view>& messages) {
  CommandOutput output;
  output.exit_code = 1;
  for (const auto line : messages) {
    output.err += line;
    output.err += '\n';
  }
  if (contains(to_lower(output.err), "invalid node name specified")) {
    return {SlurmFailure::kNotInSlurm, "Invalid node name specified"};
  }
  const auto known = classify(output);
  if (known && !known->detail.starts_with("sinfo exited with")) {
    return *known;
  }
  return garbage(excerpt(messages.back(), 256));
}

// "Slurmctld(primary) at vm is UP", and a banner of stars when it is not.
bool take_ping_text(std::string_view text, Capture& out) {
  std::vector<std::string> up;
  std::vector<std::string> down;
  for (const auto raw : split(text, '\n')) {
    const auto line = trim(raw);
    const auto at = line.find(") at ");
    if (line.empty() || line.starts_with("**")) {
      continue;
    }
    if (!line.starts_with("Slurmctld(") || at == std::string_view::npos) {
      return false;
    }
    const auto rest = line.substr(at + 5);
    (rest.ends_with(" is UP") ? up : down).push_back(excerpt(rest.substr(0, rest.find(" is "))));
  }
  if (up.empty() && down.empty()) {
    return false;
  }
  out.source = "scontrol ping";
  take_pings(up, down, out);
  return true;
}

bool take_scontrol(std::string_view text, Capture& out) {
  if (!looks_like_scontrol_nodes(text)) {
    return false;
  }
  auto answer = parse_scontrol_nodes(text);
  out.source = "scontrol show node";
  out.nodes = std::move(answer.nodes);
  out.failure = std::move(answer.failure);
  out.not_understood = std::move(answer.not_understood);
  if (out.nodes.empty() && !out.failure) {
    out.failure = garbage("no node record is complete enough to be parsed");
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

bool take_sinfo(std::string_view text, Capture& out) {
  auto answer = parse_sinfo_capture(text);
  if (!answer) {
    return false;
  }
  out.source = "sinfo";
  out.nodes = std::move(answer->nodes);
  out.cluster = std::move(answer->cluster);
  out.not_understood = std::move(answer->not_understood);
  if (out.nodes.empty() && out.not_understood.empty()) {
    out.failure = QueryFailure{SlurmFailure::kNotInSlurm, "sinfo printed its headings but no node"};
  } else if (out.nodes.empty()) {
    out.failure = garbage("sinfo printed no row that can be parsed");
  }
  return true;
}

// A document or an HTTP answer behind lines of other programs (curl -v, its progress meter).
bool take_from_further_line(std::string_view text, Capture& out) {
  const auto json = text.find("\n{");
  const auto http = text.find("\nHTTP/");
  const auto at = std::min(json, http);
  if (at == std::string_view::npos) {
    return false;
  }
  const auto rest = text.substr(at + 1);
  const auto head = split_http(rest);
  out.http_status = head.status;
  if (head.status != 0) {
    take_http(head.body, out);
  } else {
    take_json(rest, out);
  }
  for (const auto line : split(text.substr(0, at), '\n')) {
    if (!trim(line).empty() && out.not_understood.size() <= kMaxNotes) {
      out.not_understood.push_back(excerpt(trim(line)));
    }
  }
  return true;
}

void take_unknown(std::string_view text, Capture& out) {
  out.slurm_version = parse_slurmd_version(text);
  if (is_web_page(text)) {
    out.failure = garbage("a web page, not output of Slurm");
  } else {
    out.failure = garbage("not a recognised Slurm answer about a node");
  }
  out.not_understood.push_back(excerpt(trim(text).substr(0, trim(text).find('\n'))));
}

// Plain text: the output of a command, without shell lines and messages.
void take_text(std::string_view text, Capture& out) {
  if (const auto status = rest_text_status(text); status != 0) {
    take_plain_rest(text, status, out);
  } else if (!take_scontrol(text, out) && !take_slurmd(text, out) && !take_ping_text(text, out) &&
             !take_sinfo(text, out) && !take_from_further_line(text, out)) {
    take_unknown(text, out);
  }
}

void take_command_output(std::string_view text, Capture& out) {
  std::vector<std::string_view> messages;
  text = without_shell_lines(take_messages(text, messages));
  if (!trim(text).empty()) {
    is_json(text) ? take_json(text, out) : take_text(text, out);
  }
  if (messages.empty()) {
    return;
  }
  if (out.source == "unknown") {
    out.source = "error message";
    out.failure = classify_messages(messages);
  }
  for (const auto message : messages) {
    if (out.source != "error message" && out.not_understood.size() <= kMaxNotes) {
      out.not_understood.push_back(excerpt(message));
    }
  }
}

// Messages in words of their own, whole lines of a program's error output.
bool is_known_message(std::string_view text) {
  if (text.size() > 4096) {
    return false;
  }
  CommandOutput output;
  output.exit_code = 1;
  output.err = text;
  const auto known = classify(output);
  return known && !known->detail.starts_with("sinfo exited with");
}

void recognise(std::string_view text, Capture& out) {
  if (trim(text).empty()) {
    out.failure = garbage(
        "the capture is empty; sinfo prints nothing about a node that Slurm does not know or that "
        "is in no partition, which cannot be told from an empty file");
    return;
  }
  const auto head = split_http(text);
  out.http_status = head.status;
  if (text.starts_with("HTTP/")) {
    take_http(head.body, out);
    return;
  }
  take_command_output(text, out);
  if (out.source == "unknown" && is_known_message(text)) {
    out.source = "error message";
    out.failure = classify_messages({text});
    out.not_understood.clear();
  }
}

}  // namespace

Capture parse_capture(std::string_view text) {
  Capture out;
  out.source = "unknown";
  const auto plain = plain_text(text);
  recognise(without_shell_lines(plain), out);
  if (out.not_understood.size() > kMaxNotes) {
    const auto more = out.not_understood.size() - kMaxNotes;
    out.not_understood.resize(kMaxNotes);
    out.not_understood.push_back(fmt::format("and {} more", more));
  }
  return out;
}

}  // namespace slurmlet::slurm
