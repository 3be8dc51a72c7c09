#include "cli/command_table.h"

#include "cli/commands.h"

namespace slurmlet::cli {
namespace {

const CommandFlag kTextOrJson{"--output", "-o", "string", "text", "text or json", {"text", "json"}};

Command run_command() { return {"run", "", "", "", "", {}, true, run_forever}; }

Command status() {
  return {"status",
          "[-o text|json]",
          "query the running daemon",
          "Shows the state of the daemon running on this machine, over endpoint.healthzPort.",
          "0 registered and healthy; 1 running, but not healthy; 2 invalid configuration; 3 no\n"
          "daemon answers.",
          {kTextOrJson},
          true,
          status_command};
}

Command check() {
  return {"check",
          "[-o text|json]",
          "find out what is wrong and how to fix it",
          "Checks everything slurmlet needs and reports what is wrong, why, and how to fix it.\n"
          "Changes nothing, with or without a running daemon. Run it as root for complete results.",
          "0 no errors (warnings allowed); 1 at least one error; 2 invalid configuration.",
          {kTextOrJson},
          true,
          check_command};
}

Command wait_registered() {
  return {"wait-registered",
          "[--timeout=300] [--sentinel FILE]",
          "wait until the Node is registered",
          "Waits until the daemon on this machine runs, its Node is registered and its Lease is\n"
          "held.",
          "0 registered; 1 timed out (the reason is logged); 2 invalid configuration.",
          {{"--timeout", "", "duration", "300", "how long to wait; also whole seconds"},
           {"--sentinel", "", "string", "", "file to write once the Node is registered"}},
          true,
          wait_registered_command};
}

Command print_node() {
  return {
      "print-node",
      "[-o yaml|json] [--diff]",
      "print the Node, or how it differs from the cluster's",
      "Prints the Node that this machine would register, without contacting an API server. With\n"
      "--diff, prints what slurmlet would change on the Node in the cluster; this needs the\n"
      "node's credential.",
      "With --diff: 0 no difference; 1 differences; 2 cannot compare.",
      {{"--output", "-o", "string", "yaml", "yaml or json", {"yaml", "json"}},
       {"--diff", "", "", "", "print the differences from the Node in the cluster"}},
      true,
      print_node_command};
}

Command parse_slurm() {
  return {
      "parse-slurm",
      "[FILE] [--node NAME]",
      "print what slurmlet reads from captured Slurm output",
      "Reads captured output of sinfo, scontrol (text or JSON), slurmrestd (the response body,\n"
      "alone or with the headers that \"curl -i\" prints) or \"scontrol show slurmd\", detects\n"
      "which it is, and prints as JSON the facts, and the conditions, capacity and labels that\n"
      "follow from them. Without FILE, or with \"-\", reads standard input. Needs no\n"
      "configuration and no privileges.",
      "0 recognised; 1 not recognised; 2 the file cannot be read.",
      {{"FILE", "", "", "", ""}, {"--node", "", "string", "", "print only this node"}},
      false,
      parse_slurm_command};
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands{
      run_command(),
      status(),
      check(),
      wait_registered(),
      print_node(),
      parse_slurm(),
      {"config-table",
       "",
       "print the table of all settings, in Markdown",
       "",
       "",
       {},
       false,
       config_table_command},
      {"version", "", "print the version", "", "", {}, false, version_command},
  };
  return kCommands;
}

const Command* find_command(std::string_view name) {
  for (const auto& command : commands()) {
    if (command.name == name) {
      return &command;
    }
  }
  return nullptr;
}

}  // namespace slurmlet::cli
