// CLI11 splits the arguments; it is included here only, and none of its exceptions leave this file.

#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "cli/command_table.h"
#include "cli/virtual_kubelet.h"
#include "config/settings_table.h"

namespace slurmlet::cli {
namespace {

CLI::Option* add_value(CLI::App& to, const std::string& names) {
  return to.add_option(names, CLI::callback_t{[](const CLI::results_t&) { return true; }})
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_flag(CLI::App& to, const CommandFlag& flag) {
  std::string names{flag.key()};
  if (!flag.is_argument()) {
    names = flag.short_name.empty() ? std::string{flag.name}
                                    : fmt::format("{},{}", flag.short_name, flag.name);
  }
  return flag.is_switch() ? to.add_flag(names) : add_value(to, names);
}

std::string last(const CLI::Option* option) {
  return option->results().empty() ? "" : option->results().back();
}

class Parser {
 public:
  Parser();
  Result<config::ParsedCommandLine> parse(const std::vector<std::string>& arguments);

 private:
  void add_setting_flags();
  void collect(config::ParsedCommandLine& into) const;
  std::vector<std::string> bad_choices(const config::ParsedCommandLine& parsed) const;
  std::vector<std::string> leftovers() const;
  std::string unknown_flag(const std::string& argument) const;
  const Command* command() const;

  CLI::App app_{"slurmlet"};
  CLI::App* help_command_ = nullptr;
  CLI::Option* help_ = nullptr;
  CLI::Option* version_ = nullptr;
  CLI::Option* config_ = nullptr;
  CLI::Option* provider_ = nullptr;
  CLI::Option* provider_config_ = nullptr;
  std::map<const CommandFlag*, CLI::Option*> own_;
  std::vector<std::pair<std::string_view, CLI::Option*>> settings_;  // by key or old key
  std::vector<std::pair<const IgnoredFlag*, CLI::Option*>> ignored_;
};

void Parser::add_setting_flags() {
  for (const auto& row : config::settings_table()) {
    const std::string flag{row.flag};
    settings_.emplace_back(row.key,
                           config::is_bool(row) ? app_.add_flag(flag) : add_value(app_, flag));
    if (!row.old_flag.empty()) {
      settings_.emplace_back(row.old_key, add_value(app_, std::string{row.old_flag}));
    }
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
  for (const auto& command : commands()) {
    CLI::App* subcommand = app_.add_subcommand(std::string{command.name});
    subcommand->allow_extras()->fallthrough();
    for (const auto& flag : command.flags) {
      own_[&flag] = add_flag(*subcommand, flag);
    }
  }
  help_command_ = app_.add_subcommand("help");
  help_command_->allow_extras()->fallthrough();
}

// The one that was given, or the first: `slurmlet` and `slurmlet help` are about it too.
const Command* Parser::command() const {
  const auto given = app_.get_subcommands();
  const Command* found = given.empty() ? nullptr : find_command(given[0]->get_name());
  return found == nullptr ? &commands().front() : found;
}

std::string Parser::unknown_flag(const std::string& argument) const {
  const std::string flag = argument.substr(0, argument.find('='));
  std::vector<std::string> known;
  for (const auto& row : config::settings_table()) {
    known.emplace_back(row.flag);
  }
  for (const auto& general : config::command_flags()) {
    known.emplace_back(general.flag);
  }
  for (const auto& ignored : ignored_flags()) {
    known.emplace_back(ignored.flag);
  }
  for (const auto& own : command()->flags) {
    known.emplace_back(own.name);
  }
  const auto near = nearest(flag, known);
  return fmt::format("unknown flag {}{}", flag,
                     near ? fmt::format("; did you mean {}?", *near)
                          : fmt::format("; \"{} --help\" lists all flags", app_.get_name()));
}

std::vector<std::string> Parser::leftovers() const {
  std::vector<std::string> names{"help"};
  for (const auto& each : commands()) {
    names.emplace_back(each.name);
  }
  const bool takes_file = std::any_of(command()->flags.begin(), command()->flags.end(),
                                      [](const CommandFlag& flag) { return flag.is_argument(); });
  std::vector<std::string> problems;
  bool after_unknown_flag = false;
  for (const auto& argument : app_.remaining(true)) {
    if (argument.size() > 1 && argument.front() == '-' && argument != "--") {
      problems.push_back(unknown_flag(argument));
      after_unknown_flag = argument.find('=') == std::string::npos;
      continue;
    }
    // What follows an unknown flag is most likely its value.
    if (!after_unknown_flag && takes_file) {
      problems.push_back(
          fmt::format("{} reads one file; \"{}\" is one too many", command()->name, argument));
    } else if (!after_unknown_flag) {
      const auto near = nearest(argument, names);
      problems.push_back(fmt::format("unknown command \"{}\"{}", argument,
                                     near ? fmt::format("; did you mean \"{}\"?", *near) : ""));
    }
    after_unknown_flag = false;
  }
  return problems;
}

void Parser::collect(config::ParsedCommandLine& into) const {
  into.subcommand = version_->count() > 0 ? "version" : std::string{command()->name};
  into.help = help_->count() > 0 || help_command_->parsed();
  into.config_file = last(config_);
  into.provider = last(provider_);
  into.provider_config = last(provider_config_);
  for (const auto& flag : command()->flags) {
    const CLI::Option* option = own_.at(&flag);
    into.options[std::string{flag.key()}] = option->count() == 0 ? std::string{flag.default_text}
                                            : flag.is_switch()   ? "true"
                                                                 : last(option);
  }
  for (const auto& [key, option] : settings_) {
    if (option->count() > 0) {
      into.values[std::string{key}] =
          config::is_map(*config::find_row(key)) ? join(option->results(), ",") : last(option);
    }
  }
  for (const auto& [ignored, option] : ignored_) {
    if (option->count() > 0) {
      into.warnings.push_back(ignored_warning(*ignored));
    }
  }
  if (provider_->count() > 0 && into.provider != "mock" && into.provider != "slurm") {
    into.warnings.push_back(
        fmt::format("--provider {} has no effect: slurmlet hosts no providers, it always shows the "
                    "Slurm node of this machine",
                    into.provider));
  }
}

std::vector<std::string> Parser::bad_choices(const config::ParsedCommandLine& parsed) const {
  std::vector<std::string> problems;
  for (const auto& flag : command()->flags) {
    const auto given = parsed.options.find(std::string{flag.key()});
    if (flag.choices.empty() || given == parsed.options.end() ||
        std::find(flag.choices.begin(), flag.choices.end(), given->second) != flag.choices.end()) {
      continue;
    }
    problems.push_back(
        fmt::format("{} is \"{}\"; it must be {}", flag.name, given->second, flag.help));
  }
  return problems;
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

Result<config::ParsedCommandLine> Parser::parse(const std::vector<std::string>& arguments) {
  config::ParsedCommandLine parsed;
  parsed.program =
      arguments.empty() ? "slurmlet" : std::filesystem::path{arguments[0]}.filename().string();
  app_.name(parsed.program);
  auto reversed = reversed_for_cli11(arguments);
  try {
    app_.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    return Error{Code::kInvalid, fmt::format("missing value for flag: {}", error.what())};
  } catch (const CLI::Error& error) {
    return Error{Code::kInvalid, error.what()};
  }
  collect(parsed);
  if (parsed.help) {
    return parsed;
  }
  auto problems = leftovers();
  const auto choices = bad_choices(parsed);
  problems.insert(problems.end(), choices.begin(), choices.end());
  if (!problems.empty()) {
    return Error{Code::kInvalid, join(problems, "\n")};
  }
  return parsed;
}

}  // namespace

Result<config::ParsedCommandLine> parse_command_line(const std::vector<std::string>& arguments) {
  Parser parser;
  return parser.parse(arguments);
}

}  // namespace slurmlet::cli
