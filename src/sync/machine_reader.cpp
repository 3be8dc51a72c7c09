#include "sync/machine_reader.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "host/machine.h"
#include "node/gpu_cards.h"

namespace slurmlet::sync {

MachineReader::MachineReader(FactsOptions options)
    : options_(std::move(options)),
      pressures_(options_.paths),
      gpus_(options_.reading_limit),
      disk_(options_.reading_limit) {}

SteadyTime MachineReader::step(Now now, node::HostFacts& facts) {
  const bool is_report = report_is_due(now);
  if (is_report || is_requested_) {
    read_machine(facts.machine);
  }
  if (is_report) {
    next_report_ = now.steady + options_.machine_interval;
  }
  read_gpus(now, facts);
  if (tick_is_due(now)) {
    read_pressures(facts.machine);
    next_tick_ = next_aligned(now, options_.tick);
  }
  read_disk(now, facts.machine);
  return std::min({next_tick_, next_report_, gpus_.wake_at(now.steady), disk_.wake_at(now.steady)});
}

void MachineReader::read_machine(node::MachineFacts& machine) {
  machine = host::read_machine(options_.paths, std::move(machine));
  machine.system_uuid = options_.system_uuid;
  gpus_.request();
  disk_size_wanted_ = true;
  is_requested_ = false;
}

void MachineReader::read_gpus(Now now, node::HostFacts& facts) {
  const bool was_late = gpus_.is_late();
  const auto work = [&] {
    return [read = options_.read_gpus, paths = options_.paths,
            files = node::card_files(facts.slurm_conf)] { return read(paths, files); };
  };
  if (auto reading = gpus_.poll(now.steady, work, options_.patience)) {
    if (was_late) {
      log::info("the GPUs of this machine are read again");
    }
    facts.machine.gpus_hang = false;
    facts.machine.gpus = std::move(reading->gpus);
    facts.machine.missing_gpu_files = std::move(reading->missing_files);
  } else if (gpus_.is_late() && !was_late) {
    facts.machine.gpus_hang = true;
    log::warning("the GPU driver does not answer");
  }
}

void MachineReader::read_pressures(node::MachineFacts& machine) {
  const auto sample = pressures_.sample();
  machine.memory_pressure = sample.memory;
  machine.pid_pressure = sample.pid;
  disk_.request();
}

void MachineReader::read_disk(Now now, node::MachineFacts& machine) {
  const bool was_late = disk_.is_late();
  const auto work = [&] {
    return [read = options_.disk_usage, path = options_.paths.state_dir] { return read(path); };
  };
  if (const auto usage = disk_.poll(now.steady, work, options_.patience)) {
    if (was_late) {
      log::info("stateDir answers again");
    }
    machine.disk_pressure = pressures_.disk(*usage);
    if (*usage && std::exchange(disk_size_wanted_, false)) {
      machine.ephemeral_storage_bytes = (*usage)->total_bytes;
    }
  } else if (disk_.is_late() && !was_late) {
    machine.disk_pressure.reset();
    log::warning("stateDir: " + disk_.problem());
  }
  machine.disk_problem = disk_.problem();
}

}  // namespace slurmlet::sync
