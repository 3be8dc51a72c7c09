#pragma once

// Processes as /proc shows them, laid out below a TempTree.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "fakes/temp_tree.h"

namespace slurmlet::slurm {

struct FakeProcess {
  int pid = 0;
  std::string name = {};
  std::vector<std::string> arguments = {};
  char state = 'S';
  int start_time = 100;
  std::string environment = {};  // already separated by NUL
  std::string cpus = "0-7";
  std::vector<int> children = {};
  int parent = 1;
};

inline void add_process(fakes::TempTree& tree, const FakeProcess& process) {
  const std::string directory = fmt::format("proc/{}/", process.pid);
  std::string command_line;
  for (const auto& argument : process.arguments) {
    command_line += argument + '\0';
  }
  std::string children;
  for (const int child : process.children) {
    children += fmt::format("{} ", child);
  }
  tree.file(directory + "comm", process.name + "\n")
      .file(directory + "cmdline", command_line)
      .file(directory + "environ", process.environment)
      .file(
          directory + "stat",
          fmt::format("{} ({}) {} {} 1 1 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 {} 0 0\n",
                      process.pid, process.name, process.state, process.parent, process.start_time))
      .file(directory + "status", fmt::format("Name:\t{}\nCpus_allowed:\tff\nCpus_allowed_list:\t"
                                              "{}\nMems_allowed_list:\t0\n",
                                              process.name, process.cpus))
      .file(fmt::format("{}task/{}/children", directory, process.pid), children);
}

}  // namespace slurmlet::slurm
