#include "cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

namespace slurmlet::cli {
namespace {

struct Line {
  std::string section;
  std::string left;   // "--port int"
  std::string right;  // "port of … (default 10250)"
};

std::string left_side(std::string_view short_name, std::string_view flag, std::string_view type) {
  return fmt::format("{}{}{}{}", short_name.empty() ? "      " : fmt::format("  {}, ", short_name),
                     flag, type.empty() ? "" : " ", type);
}

std::string default_note(const config::Row& row) {
  const std::string text = config::default_text(row);
  if (!text.empty()) {
    return fmt::format(" (default {})", text);
  }
  return row.when_unset.empty() ? "" : fmt::format(" (default: {})", row.when_unset);
}

void add_lines(const char* section, const std::vector<config::CommandFlag>& flags,
               std::vector<Line>& lines) {
  for (const auto& flag : flags) {
    lines.push_back(
        {section, left_side(flag.short_name, flag.name, flag.type),
         fmt::format(
             "{}{}", flag.help,
             flag.default_text.empty() ? "" : fmt::format(" (default {})", flag.default_text))});
  }
}

std::vector<Line> flag_lines(const Command& command) {
  std::vector<Line> lines;
  add_lines("Command", command.flags, lines);
  if (!command.takes_settings) {
    return lines;
  }
  add_lines("General", config::command_flags(), lines);
  for (const auto& row : config::settings_table()) {
    lines.push_back({std::string{config::section_of(row)},
                     left_side("", row.flag, config::type_name(row)),
                     fmt::format("{}{}", row.help, default_note(row))});
  }
  return lines;
}

// Of `slurmlet --help`: all commands.
std::string overview(const std::string& program) {
  std::string out = fmt::format(
      "Shows the Slurm compute node it runs on in Kubernetes, as a Node that runs no pods.\n\n"
      "Usage:\n  {} [run] [flags]\n",
      program);
  std::vector<std::pair<std::string, std::string_view>> lines;
  for (const auto& command : commands()) {
    if (!command.summary.empty()) {
      lines.emplace_back(fmt::format("  {} {}{}{}", program, command.name,
                                     command.usage.empty() ? "" : " ", command.usage),
                         command.summary);
    }
  }
  lines.emplace_back(fmt::format("  {} help [COMMAND]", program), "show this help, or a command's");
  std::size_t width = 0;
  for (const auto& line : lines) {
    width = std::max(width, line.first.size());
  }
  for (const auto& [left, summary] : lines) {
    out += fmt::format("{:{}}  {}\n", left, width, summary);
  }
  return out +
         "\n"
         "Flags override environment variables, and those override the configuration file.\n"
         "virtual-kubelet's flags are accepted; those without a meaning here cause a warning.\n";
}

std::string usage(const std::string& program, const Command& command) {
  if (command.summary.empty()) {
    return overview(program);
  }
  std::string summary{command.summary};
  summary[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(summary[0])));
  return fmt::format(
      "{}\n\nUsage:\n  {} {}{}{}{}\n{}",
      command.description.empty() ? summary + "." : std::string{command.description}, program,
      command.name, command.usage.empty() ? "" : " ", command.usage,
      command.takes_settings ? " [flags]" : "",
      command.exit_codes.empty() ? "" : fmt::format("\nExit code: {}\n", command.exit_codes));
}

}  // namespace

std::string help_text(const std::string& program, const std::string& subcommand) {
  const Command* found = find_command(subcommand);
  const Command& command = found == nullptr ? commands().front() : *found;
  std::string out = usage(program, command);
  const auto lines = flag_lines(command);
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

}  // namespace slurmlet::cli
