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
  std::string cgroups = "0::/system.slice/slurmd.service\n";
  std::string uids = "0\t0\t0\t0";
  std::string gids = "0\t0\t0\t0";
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
      .file(directory + "status",
            fmt::format("Name:\t{}\nUid:\t{}\nGid:\t{}\nCpus_allowed:\tff\n"
                        "Cpus_allowed_list:\t{}\nMems_allowed_list:\t0\n",
                        process.name, process.uids, process.gids, process.cpus))
      .file(directory + "cgroup", process.cgroups)
      .file(fmt::format("{}task/{}/children", directory, process.pid), children);
}

}  // namespace slurmlet::slurm
