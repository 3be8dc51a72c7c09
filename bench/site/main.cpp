// ./dev bench site: the daemon's own rules for a whole site on one simulated clock, without
// processes. Prints a table and leaves one CSV file for each scenario.
//
// usage: site [--nodes N] [--seed N] [--scenario NAME]… [--into DIRECTORY]

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "report.h"

namespace {

using namespace slurmlet::site;

[[noreturn]] void usage(const std::string& problem) {
  std::string names;
  for (const auto& [name, title] : scenarios()) {
    names += fmt::format("  {:18} {}\n", name, title);
  }
  fmt::print(stderr,
             "site: {}\nusage: site [--nodes N] [--seed N] "
             "[--scenario NAME]... [--into DIRECTORY]\nscenarios:\n{}",
             problem, names);
  std::exit(2);
}

struct Arguments {
  Plan plan;
  std::vector<std::string> scenarios;
  std::string into;
};

int number(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value <= 0 || value > 1000000) {
    usage("not a number: " + text);
  }
  return static_cast<int>(value);
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments out;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string& option = words[i];
    if (i + 1 == words.size()) {
      usage("what is " + option + "?");
    }
    const std::string& value = words[i + 1];
    if (option == "--nodes") {
      out.plan.nodes = number(value);
      out.plan.site_nodes = std::max(out.plan.site_nodes, out.plan.nodes);
    } else if (option == "--site-nodes") {
      out.plan.site_nodes = number(value);
    } else if (option == "--seed") {
      out.plan.seed = static_cast<std::uint32_t>(number(value));
    } else if (option == "--scenario") {
      out.scenarios.push_back(value);
    } else if (option == "--into") {
      out.into = value;
    } else {
      usage("no option " + option);
    }
  }
  if (out.scenarios.empty()) {
    for (const auto& each : scenarios()) {
      out.scenarios.emplace_back(each.name);
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse({argv + 1, argv + argc});
  slurmlet::log::set_level(slurmlet::log::Level::kError);
  fmt::print("{}", table_head());
  std::fflush(stdout);
  try {
    run_scenarios(arguments.scenarios, arguments.plan, [&arguments](const Run& run) {
      fmt::print("{}", table(run, report(run)));
      if (!arguments.into.empty()) {
        std::ofstream{arguments.into + "/" + run.scenario + ".csv"} << csv(run);
      }
    });
  } catch (const std::invalid_argument& error) {
    usage(error.what());
  }
}
