#include "base/detached_task.h"
#include "operator/run.h"
#include "operator/site/limited_command.h"

int main(int argc, char** argv) {
  if (const int code = slurmlet::op::run_limited(argc, argv); code >= 0) {
    return code;
  }
  return slurmlet::end_of_process(slurmlet::op::run({argv + 1, argv + argc}));
}
