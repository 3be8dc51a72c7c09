#pragma once

// A command that changes something in Slurm must not outlive the lead of its operator. It has a
// deadline, but whoever keeps it may be stopped (SIGSTOP): so the command has an alarm of its own.

#include <string>

#include "base/command.h"

namespace slurmlet::op {

// Has the command end itself, by SIGALRM, when its timeout has passed.
void limit_by_alarm(CommandSpec& spec);

// Why its exit code says nothing about Slurm (timeout, killed, not started); "" = it does.
// `program` is what the text calls it.
std::string why_unanswered(const CommandOutput& output, const std::string& program);

// What that runs: this program, which sets the alarm and becomes the command. `arguments` are those
// of main(). Returns only when they are not such a call (-1), or with the exit code when the
// command cannot be run.
int run_limited(int count, char** arguments);

}  // namespace slurmlet::op
