// CLI11 splits the arguments; it is included here only, and none of its exceptions leave this file.

#include "config/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"
#include "config/settings_table.h"
#include "config/virtual_kubelet.h"

namespace slurmlet::config {
namespace {

constexpr std::array<std::string_view, 10> kCommands{
    "run",         "print-node", "status",       "wait-registered", "check",
    "parse-slurm", "feed",       "config-table", "version",         "help"};

class Parser {
 public:
  Parser();
  Result<ParsedCommandLine> parse(const std::vector<std::string>& arguments);

 private:
  CLI::Option* add_value(CLI::App& to, const std::string& names);
  void add_setting_flags();
  void collect(ParsedCommandLine& into) const;
  std::vector<std::string> leftovers() const;
  std::string unknown_flag(const std::string& argument) const;
  static std::string last(const CLI::Option* option);
  const CLI::App* subcommand() const;

  CLI::App app_{"slurmlet"};
  CLI::App* print_node_ = nullptr;
  CLI::App* wait_ = nullptr;
  CLI::App* parse_slurm_ = nullptr;
  CLI::App* feed_ = nullptr;
  CLI::App* help_command_ = nullptr;
  CLI::Option* help_ = nullptr;
  CLI::Option* version_ = nullptr;
  CLI::Option* config_ = nullptr;
  CLI::Option* provider_ = nullptr;
  CLI::Option* provider_config_ = nullptr;
  std::map<const CLI::App*, CLI::Option*> output_;  // -o of those that have it
  CLI::Option* diff_ = nullptr;
  CLI::Option* timeout_ = nullptr;
  CLI::Option* sentinel_ = nullptr;
  CLI::Option* capture_ = nullptr;
  CLI::Option* node_ = nullptr;
  CLI::Option* feed_output_ = nullptr;
  CLI::Option* feed_interval_ = nullptr;
  std::vector<std::pair<const Row*, CLI::Option*>> settings_;
  std::vector<std::pair<const IgnoredFlag*, CLI::Option*>> ignored_;
};

CLI::Option* Parser::add_value(CLI::App& to, const std::string& names) {
  return to.add_option(names, CLI::callback_t{[](const CLI::results_t&) { return true; }})
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Parser::add_setting_flags() {
  for (const auto& row : settings_table()) {
    const std::string flag{row.flag};
    settings_.emplace_back(&row, is_bool(row) ? app_.add_flag(flag) : add_value(app_, flag));
  }
  for (const auto& ignored : ignored_flags()) {
    const std::string flag{ignored.flag};
    ignored_.emplace_back(&ignored,
                          ignored.takes_value ? add_value(app_, flag) : app_.add_flag(flag));
  }
}

Parser::Parser() {
  app_.set_help_flag("");
  app_.allow_extras();
  app_.require_subcommand(0, 1);
  help_ = app_.add_flag("-h,--help");
  version_ = app_.add_flag("--version");
  config_ = add_value(app_, "--config");
  provider_ = add_value(app_, "--provider");
  provider_config_ = add_value(app_, "--provider-config");
  add_setting_flags();
  for (const auto& name : kCommands) {
    CLI::App* command = app_.add_subcommand(std::string{name});
    command->allow_extras();
    command->fallthrough();
  }
  print_node_ = app_.get_subcommand("print-node");
  help_command_ = app_.get_subcommand("help");
  for (const char* name : {"print-node", "status", "check"}) {
    CLI::App* command = app_.get_subcommand(name);
    output_[command] = add_value(*command, "-o,--output");
  }
  diff_ = print_node_->add_flag("--diff");
  wait_ = app_.get_subcommand("wait-registered");
  timeout_ = add_value(*wait_, "--timeout");
  sentinel_ = add_value(*wait_, "--sentinel");
  parse_slurm_ = app_.get_subcommand("parse-slurm");
  capture_ = add_value(*parse_slurm_, "file");
  node_ = add_value(*parse_slurm_, "--node");
  feed_ = app_.get_subcommand("feed");
  feed_output_ = add_value(*feed_, "--output");
  feed_interval_ = add_value(*feed_, "--interval");
}

std::string Parser::last(const CLI::Option* option) {
  return option->results().empty() ? "" : option->results().back();
}

// That was given, nullptr if none.
const CLI::App* Parser::subcommand() const {
  const auto commands = app_.get_subcommands();
  return commands.empty() ? nullptr : commands[0];
}

std::string Parser::unknown_flag(const std::string& argument) const {
  const std::string flag = argument.substr(0, argument.find('='));
  std::vector<std::string> known;
  for (const auto& row : settings_table()) {
    known.emplace_back(row.flag);
  }
  for (const auto& command_flag : command_flags()) {
    known.emplace_back(command_flag.flag);
  }
  for (const auto& ignored : ignored_flags()) {
    known.emplace_back(ignored.flag);
  }
  if (output_.contains(subcommand())) {
    known.emplace_back("--output");
  }
  if (print_node_->parsed()) {
    known.emplace_back("--diff");
  }
  if (wait_->parsed()) {
    known.insert(known.end(), {"--timeout", "--sentinel"});
  }
  if (parse_slurm_->parsed()) {
    known.emplace_back("--node");
  }
  if (feed_->parsed()) {
    known.insert(known.end(), {"--output", "--interval"});
  }
  const auto near = nearest(flag, known);
  return fmt::format("unknown flag {}{}", flag,
                     near ? fmt::format("; did you mean {}?", *near)
                          : fmt::format("; \"{} --help\" lists all flags", app_.get_name()));
}

std::vector<std::string> Parser::leftovers() const {
  std::vector<std::string> problems;
  bool after_unknown_flag = false;
  for (const auto& argument : app_.remaining(true)) {
    if (argument.size() > 1 && argument.front() == '-' && argument != "--") {
      problems.push_back(unknown_flag(argument));
      after_unknown_flag = argument.find('=') == std::string::npos;
      continue;
    }
    // What follows an unknown flag is most likely its value.
    if (!after_unknown_flag && parse_slurm_->parsed()) {
      problems.push_back(
          fmt::format("parse-slurm reads one file; \"{}\" is one too many", argument));
    } else if (!after_unknown_flag) {
      const auto near = nearest(argument, {kCommands.begin(), kCommands.end()});
      problems.push_back(fmt::format("unknown command \"{}\"{}", argument,
                                     near ? fmt::format("; did you mean \"{}\"?", *near) : ""));
    }
    after_unknown_flag = false;
  }
  return problems;
}

void Parser::collect(ParsedCommandLine& into) const {
  const CLI::App* command = subcommand();
  into.subcommand = command == nullptr || command == help_command_ ? "run" : command->get_name();
  if (version_->count() > 0) {
    into.subcommand = "version";
  }
  into.help = help_->count() > 0 || help_command_->parsed();
  into.config_file = last(config_);
  into.provider = last(provider_);
  into.provider_config = last(provider_config_);
  if (const auto output = output_.find(command); output != output_.end()) {
    const std::string usual = command == print_node_ ? "yaml" : "text";
    into.options["output"] = output->second->count() > 0 ? last(output->second) : usual;
  }
  if (print_node_->parsed()) {
    into.options["diff"] = diff_->count() > 0 ? "true" : "";
  }
  if (wait_->parsed()) {
    into.options["timeout"] = timeout_->count() > 0 ? last(timeout_) : "300";
    into.options["sentinel"] = last(sentinel_);
  }
  if (parse_slurm_->parsed()) {
    into.options["file"] = last(capture_);
    into.options["node"] = last(node_);
  }
  if (feed_->parsed()) {
    into.options["feed-output"] = last(feed_output_);
    into.options["feed-interval"] = last(feed_interval_);
  }
  for (const auto& [row, option] : settings_) {
    if (option->count() > 0) {
      into.values[std::string{row->key}] =
          is_map(*row) ? join(option->results(), ",") : last(option);
    }
  }
  for (const auto& [ignored, option] : ignored_) {
    if (option->count() > 0) {
      into.warnings.push_back(ignored_warning(*ignored));
    }
  }
  if (provider_->count() > 0 && into.provider != "mock" && into.provider != "slurm") {
    into.warnings.push_back(fmt::format(
        "--provider {} has no effect: slurmlet is no host for providers, it always shows the Slurm "
        "node of this machine",
        into.provider));
  }
}

// CLI11 reads "--flag=" as a flag whose value is the next argument; as two arguments it is what was
// meant, an empty value.
std::vector<std::string> reversed_for_cli11(const std::vector<std::string>& arguments) {
  std::vector<std::string> out;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const auto& argument = arguments[i];
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      out.push_back(argument.substr(0, argument.size() - 1));
      out.emplace_back();
    } else {
      out.push_back(argument);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

Result<ParsedCommandLine> Parser::parse(const std::vector<std::string>& arguments) {
  ParsedCommandLine parsed;
  parsed.program =
      arguments.empty() ? "slurmlet" : std::filesystem::path{arguments[0]}.filename().string();
  app_.name(parsed.program);
  auto reversed = reversed_for_cli11(arguments);
  try {
    app_.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    return Error{Code::kInvalid, fmt::format("a flag lacks its value: {}", error.what())};
  } catch (const CLI::Error& error) {
    return Error{Code::kInvalid, error.what()};
  }
  collect(parsed);
  if (parsed.help) {
    return parsed;
  }
  auto problems = leftovers();
  const auto output = parsed.options.find("output");
  const std::string usual = parsed.subcommand == "print-node" ? "yaml" : "text";
  if (output != parsed.options.end() && output->second != usual && output->second != "json") {
    problems.push_back(
        fmt::format("--output is \"{}\"; it must be {} or json", output->second, usual));
  }
  if (!problems.empty()) {
    return Error{Code::kInvalid, join(problems, "\n")};
  }
  return parsed;
}

}  // namespace

Result<ParsedCommandLine> parse_command_line(const std::vector<std::string>& arguments) {
  Parser parser;
  return parser.parse(arguments);
}

}  // namespace slurmlet::config
