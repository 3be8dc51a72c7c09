#include "config/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "config/settings_table.h"

namespace slurmlet::config {
namespace {

struct Line {
  std::string section;
  std::string left;   // "--port int"
  std::string right;  // "port of … (default 10250)"
};

std::string left_side(std::string_view flag, std::string_view type) {
  const std::string_view short_form = flag == "--help" ? "  -h, " : "      ";
  return fmt::format("{}{}{}{}", short_form, flag, type.empty() ? "" : " ", type);
}

std::string default_note(const Row& row) {
  const std::string text = default_text(row);
  if (!text.empty()) {
    return fmt::format(" (default {})", text);
  }
  return row.when_unset.empty() ? "" : fmt::format(" (default: {})", row.when_unset);
}

std::vector<Line> flag_lines(const std::string& subcommand) {
  std::vector<Line> lines;
  for (const auto& flag : command_flags()) {
    lines.push_back(
        {"General", left_side(flag.flag, flag.type),
         fmt::format(
             "{}{}", flag.help,
             flag.default_text.empty() ? "" : fmt::format(" (default {})", flag.default_text))});
  }
  if (subcommand == "print-node") {
    lines.push_back({"General", "  -o, --output string", "yaml or json (default yaml)"});
    lines.push_back({"General", "      --diff", "print what differs from the Node in the cluster"});
  }
  if (subcommand == "status" || subcommand == "check") {
    lines.push_back({"General", "  -o, --output string", "text or json (default text)"});
  }
  if (subcommand == "wait-registered") {
    lines.push_back({"General", "      --timeout duration",
                     "how long to wait, at most; whole seconds too (default 300)"});
    lines.push_back({"General", "      --sentinel string",
                     "file to write when the Node is registered, and only then"});
  }
  for (const auto& row : settings_table()) {
    lines.push_back({std::string{row.section}, left_side(row.flag, type_name(row)),
                     fmt::format("{}{}", row.help, default_note(row))});
  }
  return lines;
}

std::string usage(const std::string& program, const std::string& subcommand) {
  if (subcommand == "print-node") {
    return fmt::format(
        "Prints the Node that would be registered for this machine, without an API server. With "
        "--diff,\nprints instead what slurmlet would change on the Node that the cluster has; that "
        "takes the\ncredential. Exit code with --diff 0: nothing; 1: something; 2: it could not be "
        "compared.\n\n"
        "Usage:\n  {0} print-node [-o yaml|json] [--diff] [flags]\n",
        program);
  }
  if (subcommand == "status") {
    return fmt::format(
        "Asks the running daemon how it is, over endpoint.healthzPort.\n\n"
        "Usage:\n  {0} status [-o text|json] [flags]\n\n"
        "Exit code 0: registered and healthy; 1: it runs, but is not; 2: the configuration is "
        "wrong; 3: no\ndaemon answers.\n",
        program);
  }
  if (subcommand == "wait-registered") {
    return fmt::format(
        "Waits until the daemon of this machine runs, its Node is registered and its Lease is "
        "held.\n\n"
        "Usage:\n  {0} wait-registered [--timeout=300] [--sentinel FILE] [flags]\n\n"
        "Exit code 0: so it is; 1: not within the time, and why; 2: the configuration is wrong.\n",
        program);
  }
  if (subcommand == "check") {
    return fmt::format(
        "Looks at everything that slurmlet needs and says what is wrong, why, and what to do. "
        "Changes\nnothing; the daemon may run or not. Root sees more than others.\n\n"
        "Usage:\n  {0} check [-o text|json] [flags]\n\n"
        "Exit code 0: no errors (there may be warnings); 1: at least one error; 2: the "
        "configuration is wrong.\n",
        program);
  }
  if (subcommand == "parse-slurm") {
    return fmt::format(
        "Reads any captured answer of sinfo, scontrol (text or JSON), slurmrestd (a body, or with "
        "the\nhead as \"curl -i\" prints it) or \"scontrol show slurmd\", tells which it is, and "
        "prints as JSON\nthe facts, and the conditions, capacity and labels that follow from "
        "them.\n\n"
        "Usage:\n"
        "  {0} parse-slurm [FILE] [--node NAME]\n\n"
        "Without FILE, or with \"-\", reads stdin. Needs no configuration and no privileges. Exit "
        "code 0:\nrecognised; 1: not; 2: the file cannot be read.\n\n"
        "      --node string   of several nodes only this one\n",
        program);
  }
  if (subcommand == "feed") {
    return fmt::format(
        "Asks slurmctld one question for all nodes each interval and writes the answers to a "
        "directory,\nwhere the nodes read them (slurm.feed). Runs on one host of a site.\n\n"
        "Usage:\n  {0} feed --output DIR [--interval 30s] [flags]\n\n"
        "      --output string       directory of the feed; only this command may write there\n"
        "      --interval duration   between two questions, 1s to 1h (default 30s)\n\n"
        "Of the flags below, those of Slurm's commands and of the log have a meaning here.\n",
        program);
  }
  if (subcommand == "version") {
    return fmt::format("Prints the version.\n\nUsage:\n  {0} version\n", program);
  }
  return fmt::format(
      "Shows the Slurm compute node it runs on in Kubernetes, as a Node that runs no pods.\n\n"
      "Usage:\n"
      "  {0} [run] [flags]\n"
      "  {0} status [-o text|json]               ask the running daemon how it is\n"
      "  {0} check [-o text|json]                find out what is wrong, and what to do\n"
      "  {0} wait-registered [--timeout=300]     wait until the Node is registered\n"
      "  {0} print-node [-o yaml|json] [--diff]  print the Node, or what would change on it\n"
      "  {0} parse-slurm [FILE] [--node NAME]    print what slurmlet makes of a captured answer\n"
      "  {0} feed --output DIR                   be the one reader for all nodes of a site\n"
      "  {0} config-table                        print the table of all settings, in Markdown\n"
      "  {0} version\n\n"
      "Flags win over environment variables, these over the configuration file. virtual-kubelet's\n"
      "flags are accepted; those without a meaning here give a warning.\n",
      program);
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') {
      out += '\\';
    }
    out += c;
  }
  return out;
}

std::string code_or_empty(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", markdown_cell(text));
}

// How the default looks in the file: maps and empty texts in YAML's own form.
std::string yaml_default(const Row& row) {
  std::string text = default_text(row);
  if (!text.empty()) {
    return text;
  }
  return is_map(row) ? "{}" : "\"\"";
}

// A comment of the example file, broken between words so that no line is longer than 100.
std::string comment(std::string_view indent, std::string_view text) {
  constexpr std::size_t kMaxWidth = 100;
  std::string out;
  std::string line;
  for (const auto word : split(text, ' ')) {
    if (!line.empty() && indent.size() + 2 + line.size() + 1 + word.size() > kMaxWidth) {
      out += fmt::format("{}# {}\n", indent, line);
      line.clear();
    }
    line += fmt::format("{}{}", line.empty() ? "" : " ", word);
  }
  return out + fmt::format("{}# {}\n", indent, line);
}

void add_example_entry(const Row& row, std::string_view indent, std::string_view name,
                       std::string& out) {
  out += comment(indent, row.help);
  if (default_text(row).empty() && !row.when_unset.empty()) {
    out += comment(indent, fmt::format("Default: {}", row.when_unset));
  }
  out += fmt::format("{}#{}: {}\n", indent, name, yaml_default(row));
}

}  // namespace

std::string help_text(const std::string& program, const std::string& subcommand) {
  std::string out = usage(program, subcommand);
  if (subcommand == "version" || subcommand == "parse-slurm") {
    return out;
  }
  const auto lines = flag_lines(subcommand);
  std::size_t width = 0;
  for (const auto& line : lines) {
    width = std::max(width, line.left.size());
  }
  std::string section;
  for (const auto& line : lines) {
    if (line.section != section) {
      section = line.section;
      out += fmt::format("\n{} flags:\n\n", section);
    }
    out += fmt::format("{:{}}   {}\n", line.left, width, line.right);
  }
  return out;
}

std::string settings_table_markdown() {
  std::string out;
  std::string_view section;
  for (const auto& row : settings_table()) {
    if (row.section != section) {
      section = row.section;
      out += fmt::format(
          "{}### {}\n\n| Key | Flag | Environment | Default | Meaning |\n|---|---|---|---|---|\n",
          out.empty() ? "" : "\n", section);
    }
    const std::string text = default_text(row);
    out += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", row.key, row.flag,
                       code_or_empty(row.environment),
                       text.empty() ? markdown_cell(row.when_unset) : code_or_empty(text),
                       markdown_cell(row.help));
  }
  return out;
}

std::string example_config() {
  std::string out = fmt::format(
      "# Configuration of slurmlet, read from {}. Every key is shown with its\n"
      "# default; remove the '#' to change one. Flags and environment variables win over this "
      "file.\n"
      "# Durations: 90s, 1m30s, 500ms.\n"
      "apiVersion: {}\n"
      "kind: {}\n",
      kDefaultConfigFile, kApiVersion, kKind);
  std::string_view group;
  for (const auto& row : settings_table()) {
    const auto dot = row.key.find('.');
    out += '\n';
    if (dot == std::string_view::npos) {
      add_example_entry(row, "", row.key, out);
      continue;
    }
    if (row.key.substr(0, dot) != group) {
      group = row.key.substr(0, dot);
      out += fmt::format("{}:\n", group);
    }
    add_example_entry(row, "  ", row.key.substr(dot + 1), out);
  }
  return out;
}

}  // namespace slurmlet::config
