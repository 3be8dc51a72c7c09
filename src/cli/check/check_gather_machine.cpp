#include <fmt/format.h>

#include "base/command.h"
#include "base/text.h"
#include "cli/check/check_gather.h"
#include "host/listening.h"
#include "slurm/local/munge_socket.h"
#include "slurm/sources/source_choice.h"
#include "status/daemon_client.h"

namespace slurmlet::cli {
namespace {

constexpr Duration kMungeTime = std::chrono::seconds{3};
constexpr Duration kSystemctlTime = std::chrono::seconds{3};

// Why munged makes no credential; "" when it does, or when there is no munge(1) to ask with. The
// credential is thrown away.
std::string encode_error(const std::string& socket) {
  const std::string program = slurm::find_program("munge", "");
  if (program.empty()) {
    return "";
  }
  CommandSpec spec;
  spec.argv = {program, "-n", "-S", socket};
  spec.timeout = kMungeTime;
  const auto output = run_command(spec);
  if (!output) {
    return output.error().message;
  }
  if (output->timed_out) {
    return "munge -n did not finish in time";
  }
  return output->succeeded() ? "" : std::string{trim(output->err)};
}

std::string show_socket_unit() {
  CommandSpec spec;
  spec.argv = {"systemctl", "show", "--property=ActiveState,Listen", "slurmlet.socket"};
  spec.timeout = kSystemctlTime;
  const auto output = run_command(spec);
  return output ? output->out : "";
}

}  // namespace

MungeSeen look_at_munge(const daemon::SlurmConfSeen& conf) {
  MungeSeen out;
  out.socket = conf.munge_socket;
  if (out.socket.value_or("").empty()) {
    return out;
  }
  if (const auto problem = slurm::munge_problem(*out.socket)) {
    out.problem = problem->detail;
  } else {
    out.encode_error = encode_error(*out.socket);
  }
  return out;
}

std::vector<PortSeen> look_at_ports(const config::Settings& settings) {
  std::vector<PortSeen> out{{settings.endpoint.port, "kubelet API", "endpoint.port"},
                            {settings.endpoint.healthz_port, "health", "endpoint.healthzPort"}};
  for (auto& port : out) {
    const auto reach = port.port == settings.endpoint.healthz_port ? host::Reach::kLoopback
                                                                   : host::Reach::kAnyAddress;
    if (const auto owner = host::who_listens("/proc", port.port, reach)) {
      port.taken = true;
      port.pid = owner->pid;
      port.program = owner->program;
      // The first of those who hold a socket unit's socket.
      port.of_socket_unit = port.pid == 1 && port.program == "systemd" &&
                            socket_unit_has(show_socket_unit(), port.port);
      port.other =
          status::may_be_daemon(owner->uid, settings.state_dir) ? "" : host::to_words(*owner);
    }
  }
  return out;
}

}  // namespace slurmlet::cli
