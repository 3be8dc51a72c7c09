#pragma once

// A command that changes Slurm must not outlive its operator's lead. The operator enforces a
// deadline but may be stopped (SIGSTOP), so the command has an alarm of its own.

#include <string>

#include "base/command.h"

namespace slurmlet::op {

// Makes SIGALRM end the command after its timeout.
void limit_by_alarm(CommandSpec& spec);

// Why the exit code says nothing about Slurm (timeout, killed, not started); else "". `program`:
// its name in the text.
std::string why_unanswered(const CommandOutput& output, const std::string& program);

// Called by main(): if the arguments are from limit_by_alarm(), sets the alarm and executes the
// command. Returns -1 if they are not, or the exit code if the command cannot be run.
int run_limited(int count, char** arguments);

}  // namespace slurmlet::op
