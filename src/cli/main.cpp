#include "base/detached_task.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  return slurmlet::end_of_process(slurmlet::cli::run({argv, argv + argc}));
}
