#include "app/commands.h"

#include <cstdio>
#include <utility>

#include "app/daemon.h"
#include "app/feed_command.h"
#include "app/parse_slurm.h"
#include "app/print_node.h"
#include "app/signals.h"
#include "base/log.h"
#include "base/text.h"
#include "config/command_line.h"
#include "config/environment.h"
#include "config/help.h"
#include "config/load.h"

namespace slurmlet::app {
namespace {

constexpr int kFailed = 1;
constexpr int kBadConfiguration = 2;

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

int fail(const Error& error, int code) {
  for (const auto line : split(error.message, '\n')) {
    if (!line.empty()) {
      log::error(std::string{line});
    }
  }
  return code;
}

void set_log_level(const std::string& name) {
  log::set_level(name == "debug"     ? log::Level::kDebug
                 : name == "warning" ? log::Level::kWarning
                 : name == "error"   ? log::Level::kError
                                     : log::Level::kInfo);
}

Result<config::Settings> load_settings(const config::ParsedCommandLine& command) {
  return config::load(command, config::process_environment(), config::read_whole_file());
}

void announce(const config::Settings& settings) {
  set_log_level(settings.log_level);
  for (const auto& warning : settings.warnings) {
    log::warning(warning);
  }
}

int run_forever(const config::ParsedCommandLine& command) {
  auto signals = Signals::open();
  if (!signals) {
    return fail(signals.error(), kFailed);
  }
  auto settings = load_settings(command);
  if (!settings) {
    return fail(settings.error(), kBadConfiguration);
  }
  announce(*settings);
  log::info("slurmlet " SLURMLET_VERSION " starts: " + config::effective_settings_json(*settings));
  while (true) {
    auto outcome = run_daemon(*settings, *signals);
    if (!outcome) {
      return fail(outcome.error(),
                  outcome.error().code == Code::kInvalid ? kBadConfiguration : kFailed);
    }
    if (*outcome == Outcome::kStopped) {
      return 0;
    }
    auto fresh = load_settings(command);
    if (fresh) {
      settings = std::move(fresh);
      announce(*settings);
      log::info("SIGHUP: configuration read again: " + config::effective_settings_json(*settings));
    } else {
      log::error("SIGHUP: the new configuration is refused, the old one stays in use");
      fail(fresh.error(), kBadConfiguration);
    }
  }
}

int print_node_command(const config::ParsedCommandLine& command) {
  auto settings = load_settings(command);
  if (!settings) {
    return fail(settings.error(), kBadConfiguration);
  }
  announce(*settings);
  const auto format = command.options.find("output");
  auto text = print_node(*settings, format == command.options.end() ? "yaml" : format->second);
  if (!text) {
    return fail(text.error(), text.error().code == Code::kInvalid ? kBadConfiguration : kFailed);
  }
  print(*text);
  return 0;
}

int feed_command(const config::ParsedCommandLine& command) {
  auto signals = Signals::open();
  if (!signals) {
    return fail(signals.error(), kFailed);
  }
  const auto settings = load_settings(command);
  if (!settings) {
    return fail(settings.error(), kBadConfiguration);
  }
  announce(*settings);
  return run_feed(*settings,
                  {command.options.at("feed-output"), command.options.at("feed-interval")},
                  *signals);
}

int parse_slurm_command(const config::ParsedCommandLine& command) {
  const auto text = read_capture(command.options.at("file"));
  if (!text) {
    return fail(text.error(), kBadConfiguration);
  }
  const ParsedSlurm parsed = parse_slurm(*text, command.options.at("node"));
  print(parsed.json);
  return parsed.recognised ? 0 : kFailed;
}

}  // namespace

int run(const std::vector<std::string>& arguments) {
  auto command = config::parse_command_line(arguments);
  if (!command) {
    return fail(command.error(), kBadConfiguration);
  }
  if (command->help) {
    print(config::help_text(command->program, command->subcommand));
    return 0;
  }
  if (command->subcommand == "version") {
    print("slurmlet " SLURMLET_VERSION "\n");
    return 0;
  }
  if (command->subcommand == "config-table") {
    print(config::settings_table_markdown());
    return 0;
  }
  if (command->subcommand == "feed") {
    return feed_command(*command);
  }
  if (command->subcommand == "print-node") {
    return print_node_command(*command);
  }
  if (command->subcommand == "parse-slurm") {
    return parse_slurm_command(*command);
  }
  return run_forever(*command);
}

}  // namespace slurmlet::app
