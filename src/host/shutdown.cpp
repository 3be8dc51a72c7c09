#include "host/shutdown.h"

#include <chrono>
#include <cstdint>

#include "base/command.h"
#include "base/file.h"
#include "base/text.h"

namespace slurmlet::host {
namespace {

bool systemd_says_stopping(const ShutdownSources& sources) {
  CommandSpec spec;
  spec.argv = sources.command;
  spec.timeout = sources.time_limit;
  spec.max_output_bytes = 4096;
  const auto output = run_command(spec);
  // The exit code is nonzero for every state but "running", so it is ignored.
  return output && !output->timed_out && trim(output->out) == "stopping";
}

}  // namespace

bool is_shutdown_due(std::string_view scheduled, WallTime now) {
  const auto due_usec = parse_int<std::int64_t>(value_behind("USEC=", scheduled));
  const auto now_usec =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  return due_usec && *due_usec <= now_usec &&
         is_one_of(value_behind("MODE=", scheduled),
                   {"poweroff", "reboot", "halt", "kexec", "soft-reboot"});
}

bool system_is_stopping(const ShutdownSources& sources) {
  if (const auto scheduled = read_file(sources.scheduled)) {
    if (is_shutdown_due(*scheduled, std::chrono::system_clock::now())) {
      return true;
    }
  }
  return systemd_says_stopping(sources);
}

}  // namespace slurmlet::host
