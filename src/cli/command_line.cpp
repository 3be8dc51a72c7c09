#include "cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "config/removed_settings.h"

namespace slurmlet::cli {
namespace {

struct KnownFlag {
  std::string_view name;
  std::string_view short_name;  // "-o"; "" = none
  bool takes_value;             // false: "true" without "=", and no other argument is its value
  bool in_help = true;          // false: accepted, but nothing to suggest
};

std::vector<KnownFlag> known_flags(const Command& command) {
  std::vector<KnownFlag> out;
  for (const auto& row : config::settings_table()) {
    out.push_back({row.flag, "", !config::is_bool(row)});
  }
  const auto add = [&out](const std::vector<config::CommandFlag>& flags) {
    for (const auto& flag : flags) {
      out.push_back({flag.name, flag.short_name, !flag.is_switch()});
    }
  };
  add(config::command_flags());
  for (const auto& ignored : ignored_flags()) {
    out.push_back({ignored.flag, "", ignored.takes_value, false});
  }
  add(command.flags);
  return out;
}

// "-1" is a value.
bool looks_like_flag(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && (argument[1] < '0' || argument[1] > '9');
}

class Parser {
 public:
  Result<config::ParsedCommandLine> parse(const std::vector<std::string>& arguments);

 private:
  void choose(const Command& command);
  void take_argument(const std::string& argument);
  // `next` is nullptr behind the last argument. Whether it was taken as the value.
  bool take_flag(const std::string& argument, const std::string* next);
  const KnownFlag* find_flag(std::string_view name) const;
  const std::string* last(std::string_view flag) const;
  config::ParsedCommandLine collect() const;
  void add_warnings(config::ParsedCommandLine& parsed) const;
  void add_leftovers(const config::ParsedCommandLine& parsed);
  void add_bad_choices(const config::ParsedCommandLine& parsed);
  // `value` is "" where none follows.
  std::string unknown_flag(const std::string& argument, const std::string& value,
                           const std::string& program) const;

  // The first until another is named: `slurmlet` and `slurmlet help` are about it too.
  const Command* command_ = &commands().front();
  bool is_chosen_ = false;
  bool help_ = false;
  std::string argument_;
  std::vector<KnownFlag> known_ = known_flags(*command_);
  std::map<std::string_view, std::vector<std::string>> given_;  // by name
  std::vector<std::string> leftovers_;
  std::vector<std::string> problems_;
};

void Parser::choose(const Command& command) {
  command_ = &command;
  is_chosen_ = true;
  known_ = known_flags(command);
}

const KnownFlag* Parser::find_flag(std::string_view name) const {
  const auto found = std::find_if(known_.begin(), known_.end(), [&](const KnownFlag& flag) {
    return flag.name == name || (!flag.short_name.empty() && flag.short_name == name);
  });
  return found == known_.end() ? nullptr : &*found;
}

const std::string* Parser::last(std::string_view flag) const {
  const auto found = given_.find(flag);
  return found == given_.end() ? nullptr : &found->second.back();
}

void Parser::take_argument(const std::string& argument) {
  const Command* named = is_chosen_ ? nullptr : find_command(argument);
  if (named != nullptr) {
    choose(*named);
  } else if (argument == "help") {
    help_ = true;
  } else if (command_->takes_argument && argument_.empty()) {
    argument_ = argument;
  } else {
    leftovers_.push_back(argument);
  }
}

bool Parser::take_flag(const std::string& argument, const std::string* next) {
  const auto equals = argument.find('=');
  const KnownFlag* flag = find_flag(std::string_view{argument}.substr(0, equals));
  std::optional<std::string> value;
  if (flag != nullptr && equals != std::string::npos) {
    value = argument.substr(equals + 1);
  } else if (flag == nullptr && argument[1] != '-') {  // -ojson
    flag = find_flag(std::string_view{argument}.substr(0, 2));
    flag = flag != nullptr && flag->takes_value ? flag : nullptr;
    value = argument.substr(2);
  }
  if (flag == nullptr) {
    leftovers_.push_back(argument);
    return false;
  }
  const bool takes_next = !value && flag->takes_value && next != nullptr && !looks_like_flag(*next);
  if (takes_next) {
    value = *next;
  } else if (!value && flag->takes_value) {
    problems_.push_back(fmt::format("missing value for flag {}", flag->name));
    return false;
  }
  given_[flag->name].push_back(value.value_or("true"));
  return takes_next;
}

std::string Parser::unknown_flag(const std::string& argument, const std::string& value,
                                 const std::string& program) const {
  const std::string flag = argument.substr(0, argument.find('='));
  const auto is_flag = [&](const config::CommandFlag& each) {
    return each.name == flag || each.short_name == flag;
  };
  std::vector<std::string> owners;
  for (const auto& command : commands()) {
    if (std::any_of(command.flags.begin(), command.flags.end(), is_flag)) {
      owners.push_back(fmt::format("\"{} {}\"", program, command.name));
      if (&command == command_) {
        return fmt::format("{} must follow the command: {} {} {}{}{}", flag, program, command.name,
                           argument, value.empty() ? "" : " ", value);
      }
    }
  }
  if (!owners.empty()) {
    return fmt::format("{} is a flag of {}", flag, join(owners, ", "));
  }
  if (const auto removal = config::removal_of(flag); !removal.empty()) {
    return fmt::format("{} {}", flag, removal);
  }
  std::vector<std::string> names;  // without the dashes, which say nothing about nearness
  for (const auto& each : known_) {
    if (each.in_help) {
      names.emplace_back(each.name.substr(2));
    }
  }
  const auto near = nearest(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())), names);
  return fmt::format("unknown flag {}{}", flag,
                     near ? fmt::format("; did you mean --{}?", *near)
                          : fmt::format("; \"{} --help\" lists all flags", program));
}

void Parser::add_leftovers(const config::ParsedCommandLine& parsed) {
  std::vector<std::string> names{"help"};
  for (const auto& each : commands()) {
    names.emplace_back(each.name);
  }
  const auto is_flag = [](const std::string& argument) {
    return argument.size() > 1 && argument.front() == '-';
  };
  for (std::size_t i = 0; i < leftovers_.size(); ++i) {
    const std::string& argument = leftovers_[i];
    if (is_flag(argument)) {
      // What follows an unknown flag is most likely its value.
      const bool has_value = argument.find('=') == std::string::npos && i + 1 < leftovers_.size() &&
                             !is_flag(leftovers_[i + 1]);
      problems_.push_back(unknown_flag(argument, has_value ? leftovers_[++i] : "", parsed.program));
    } else if (find_command(argument) != nullptr) {
      problems_.push_back(
          fmt::format("one command at a time: unexpected argument \"{}\"", argument));
    } else if (const auto removal = config::removal_of(argument); !removal.empty()) {
      problems_.push_back(fmt::format("{} {}", argument, removal));
    } else {
      const auto near = nearest(argument, names);
      problems_.push_back(fmt::format("unknown command \"{}\"{}", argument,
                                      near ? fmt::format("; did you mean \"{}\"?", *near) : ""));
    }
  }
}

void Parser::add_bad_choices(const config::ParsedCommandLine& parsed) {
  for (const auto& flag : command_->flags) {
    const std::string& given = parsed.options.at(std::string{flag.key()});
    if (flag.is_switch() && !given.empty() && given != "true") {
      problems_.push_back(fmt::format("{} is \"{}\"; it must be true or false", flag.name, given));
    }
    if (!flag.choices.empty() &&
        std::find(flag.choices.begin(), flag.choices.end(), given) == flag.choices.end()) {
      problems_.push_back(fmt::format("{} is \"{}\"; it must be {}", flag.name, given, flag.help));
    }
  }
}

config::ParsedCommandLine Parser::collect() const {
  config::ParsedCommandLine out;
  const auto text = [this](std::string_view flag) {
    const std::string* given = last(flag);
    return given == nullptr ? std::string{} : *given;
  };
  out.subcommand = text("--version") == "true" ? "version" : std::string{command_->name};
  out.help = help_ || text("--help") == "true";
  out.argument = argument_;
  out.config_file = text("--config");
  out.provider = text("--provider");
  out.provider_config = text("--provider-config");
  for (const auto& flag : command_->flags) {
    const std::string* given = last(flag.name);
    std::string& option = out.options[std::string{flag.key()}];
    option = given == nullptr ? std::string{flag.default_text} : *given;
    if (flag.is_switch() && option == "false") {
      option.clear();
    }
  }
  for (const auto& row : config::settings_table()) {
    if (const auto found = given_.find(row.flag); found != given_.end()) {
      out.values[std::string{row.key}] =
          config::is_map(row) ? join(found->second, ",") : found->second.back();
    }
  }
  return out;
}

void Parser::add_warnings(config::ParsedCommandLine& parsed) const {
  for (const auto& ignored : ignored_flags()) {
    if (last(ignored.flag) != nullptr) {
      parsed.warnings.push_back(ignored_warning(ignored));
    }
  }
  if (last("--provider") != nullptr && parsed.provider != "mock" && parsed.provider != "slurm") {
    parsed.warnings.push_back(
        fmt::format("--provider {} has no effect: slurmlet hosts no providers, it always shows the "
                    "Slurm node of this machine",
                    parsed.provider));
  }
}

Result<config::ParsedCommandLine> Parser::parse(const std::vector<std::string>& arguments) {
  bool flags_end = false;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (flags_end || !looks_like_flag(argument)) {
      take_argument(argument);
    } else if (argument == "--") {
      flags_end = true;
    } else if (take_flag(argument, i + 1 < arguments.size() ? &arguments[i + 1] : nullptr)) {
      ++i;
    }
  }
  config::ParsedCommandLine parsed = collect();
  add_warnings(parsed);
  parsed.program =
      arguments.empty() ? "slurmlet" : std::filesystem::path{arguments[0]}.filename().string();
  if (parsed.help && (!help_ || leftovers_.empty())) {
    return parsed;
  }
  add_leftovers(parsed);
  add_bad_choices(parsed);
  if (!problems_.empty()) {
    return Error{Code::kInvalid, join(problems_, "\n")};
  }
  return parsed;
}

}  // namespace

Result<config::ParsedCommandLine> parse_command_line(const std::vector<std::string>& arguments) {
  return Parser{}.parse(arguments);
}

}  // namespace slurmlet::cli
