#include "slurm/answers/capture_text.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace slurmlet::slurm {
namespace {

constexpr char kEscape = '\x1B';

// Length of the escape sequence at the front (ECMA-48: CSI "ESC [ 0;31 m", OSC "ESC ] … BEL", or
// two bytes).
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) {
    return 1;
  }
  if (text[1] == '[') {
    const auto end = std::find_if(text.begin() + 2, text.end(),
                                  [](char c) { return c < ' ' || (c >= '@' && c <= '~'); });
    const auto length = static_cast<std::size_t>(end - text.begin());
    return end != text.end() && *end >= '@' ? length + 1 : length;
  }
  if (text[1] == ']') {
    const auto end = text.find_first_of("\x07\n\x1B", 2);
    const bool is_bell = end != std::string_view::npos && text[end] == '\x07';
    return end == std::string_view::npos ? text.size() : end + (is_bell ? 1 : 0);
  }
  return text[1] == '\n' ? 1 : 2;
}

// The first line with its line break taken off the text.
std::string_view take_line(std::string_view& text) {
  const auto line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

// "sinfo -N", "SLURM_CONF=/x timeout 5 scontrol show node n1": a command that asks Slurm.
bool is_command(std::string_view line) {
  constexpr auto kPrograms =
      std::to_array<std::string_view>({"sinfo", "scontrol", "curl", "slurmd", "sudo", "cat",
                                       "timeout", "setpriv", "env", "srun", "ssh"});
  line = trim(line);
  while (true) {
    const auto word = line.substr(0, line.find(' '));
    const auto name =
        word.substr(word.rfind('/') == std::string_view::npos ? 0 : word.rfind('/') + 1);
    if (std::find(kPrograms.begin(), kPrograms.end(), name) != kPrograms.end()) {
      return true;
    }
    // A variable for the command: "SLURM_TIME_FORMAT=%s".
    const bool is_variable = word.starts_with("SLURM") && word.find('=') != std::string_view::npos;
    if (!is_variable || word.size() == line.size()) {
      return false;
    }
    line = trim(line.substr(word.size()));
  }
}

// "$ sinfo", "root@n1:~# sinfo", "[root@n1 ~]#": what stands before the command, if it is a prompt.
bool is_prompt(std::string_view line) {
  line = trim(line);
  if (line == "$" || line == "#" || line.starts_with("$ ") || line.starts_with("# ")) {
    return true;
  }
  for (const std::string_view sign : {"$ ", "# ", "% ", "> "}) {
    const auto at = line.find(sign);
    if (at != std::string_view::npos && at < 120 && is_command(line.substr(at + 2))) {
      return true;
    }
  }
  const bool ends = line.ends_with('$') || line.ends_with('#');
  return ends && line.size() < 120 && line.find('@') != std::string_view::npos &&
         line.find('=') == std::string_view::npos && line.find('|') == std::string_view::npos;
}

}  // namespace

std::string plain_text(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) {
    text.remove_prefix(kMark.size());
  }
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\r\x1B"), text.size());
    out.append(text.substr(0, end));
    text.remove_prefix(end);
    if (text.empty()) {
      break;
    }
    if (text.front() == kEscape) {
      text.remove_prefix(escape_length(text));
      continue;
    }
    const auto returns = text.substr(0, text.find_first_not_of('\r'));
    text.remove_prefix(returns.size());
    if (!text.empty() && text.front() != '\n') {
      out.append(returns);
    }
  }
  return out;
}

std::string_view without_shell_lines(std::string_view text) {
  while (!text.empty()) {
    auto rest = text;
    const auto line = take_line(rest);
    if (!trim(line).empty() && !is_prompt(line) && !is_command(line)) {
      break;
    }
    text = rest;
  }
  while (true) {
    const auto end = text.find_last_not_of('\n');
    const auto last = end == std::string_view::npos ? 0 : text.rfind('\n', end) + 1;
    const auto line = text.substr(last, end == std::string_view::npos ? 0 : end + 1 - last);
    const auto brace = line.rfind('}');  // a document without a line break, then the prompt
    const auto document = brace == std::string_view::npos ? 0 : brace + 1;
    if (line.empty() || !is_prompt(line.substr(document))) {
      return text;
    }
    text = text.substr(0, last + document);
  }
}

bool is_message(std::string_view line) {
  constexpr auto kPrograms = std::to_array<std::string_view>(
      {"sinfo: ", "scontrol: ", "slurmd: ", "slurmrestd: ", "curl: ("});
  line = trim(line);
  if (line.starts_with("[20") && line.find("] ") < 40) {  // the time, with SLURM_DEBUG
    line.remove_prefix(line.find("] ") + 2);
  }
  if (line.starts_with("error: ") || line.starts_with("fatal: ")) {
    return true;
  }
  if (std::any_of(kPrograms.begin(), kPrograms.end(),
                  [&](auto program) { return line.starts_with(program); })) {
    return true;
  }
  // "slurm_load_node error: …", "scontrol_reboot_nodes error:…", "delete_node nodename=n1: …"
  const auto word = line.substr(0, line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
  const auto rest = line.substr(word.size());
  return word.find('_') != std::string_view::npos && word.size() > 5 &&
         (rest.starts_with(" error:") || rest.starts_with(": ") || rest.starts_with(":") ||
          rest.starts_with(" nodename="));
}

std::string_view take_messages(std::string_view text, std::vector<std::string_view>& messages) {
  while (!text.empty()) {
    auto rest = text;
    const auto line = take_line(rest);
    if (!trim(line).empty() && !is_message(line)) {
      break;
    }
    if (!trim(line).empty()) {
      messages.push_back(trim(line));
    }
    text = rest;
  }
  return text;
}

HttpHead split_http(std::string_view text) {
  HttpHead out;
  out.body = text;
  while (out.body.starts_with("HTTP/")) {
    const auto line = out.body.substr(0, out.body.find('\n'));
    const auto space = line.find(' ');
    const auto status = space == std::string_view::npos ? "" : line.substr(space + 1, 3);
    constexpr int kLowest = 100;
    constexpr int kHighest = 999;
    const int number = parse_int<int>(status).value_or(0);
    out.status = number >= kLowest && number <= kHighest ? number : 0;
    const auto end = out.body.find("\n\n");
    out.body = end == std::string_view::npos ? std::string_view{} : out.body.substr(end + 2);
  }
  return out;
}

}  // namespace slurmlet::slurm
