#include "host/shutdown.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

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
  // The exit code is not zero for every state but "running".
  return output && !output->timed_out && trim(output->out) == "stopping";
}

bool ends_the_system(std::string_view mode) {
  static constexpr std::array<std::string_view, 5> kModes = {"poweroff", "reboot", "halt", "kexec",
                                                             "soft-reboot"};
  for (const std::string_view known : kModes) {
    if (mode == known) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_shutdown_due(std::string_view scheduled, WallTime now) {
  std::optional<std::int64_t> due_usec;
  std::string_view mode;
  for (const std::string_view line : split(scheduled, '\n')) {
    if (line.starts_with("USEC=")) {
      due_usec = parse_int<std::int64_t>(trim(line.substr(5)));
    } else if (line.starts_with("MODE=")) {
      mode = trim(line.substr(5));
    }
  }
  const auto now_usec =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  return due_usec && *due_usec <= now_usec && ends_the_system(mode);
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
