#include "slurm/local/slurmd_programs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <utility>

#include "base/plain_text.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

std::map<std::string, std::string> read_properties(std::string_view text) {
  std::map<std::string, std::string> properties;
  for (const auto line : split(text, '\n')) {
    const auto equals = line.find('=');
    if (equals != std::string_view::npos) {
      properties[std::string{trim(line.substr(0, equals))}] =
          valid_utf8(trim(line.substr(equals + 1)));
    }
  }
  return properties;
}

}  // namespace

std::string describe_unit(std::string_view unit, std::string_view properties) {
  auto value = read_properties(properties);
  const std::string load = value["LoadState"];
  if (load == "masked") {
    return fmt::format("{}: masked", unit);
  }
  const std::string state = value["ActiveState"];
  // "active" without a main process is transient, or another unit's slurmd.
  if (load == "not-found" || state.empty() || state == "active") {
    return "";
  }
  std::string more;
  const std::string result = value["Result"];
  const std::string sub = value["SubState"];
  if (!sub.empty() && sub != state) {
    more = sub;
  }
  if (!result.empty() && result != "success") {
    more += (more.empty() ? "" : ", ") + result;
    const std::string status = value["ExecMainStatus"];
    more += status.empty() || status == "0" ? "" : " " + status;
  }
  return more.empty() ? fmt::format("{}: {}", unit, state)
                      : fmt::format("{}: {} ({})", unit, state, more);
}

void SlurmdUnit::run_once(const std::string& unit, SteadyTime now) {
  if (has_run_ || !runner_ || runner_->running() || unit.empty() ||
      ::access(systemd_dir_.c_str(), F_OK) != 0) {
    return;
  }
  has_run_ = true;
  unit_ = unit;
  CommandSpec spec;
  spec.argv = {"systemctl", "show", unit,
               "--property=LoadState,ActiveState,SubState,Result,ExecMainStatus"};
  spec.timeout = std::chrono::seconds{5};
  spec.max_output_bytes = 4096;
  (void)runner_->start(spec, now);  // without systemctl there is nothing to say
}

void SlurmdUnit::reset() {
  has_run_ = false;
  detail_.clear();
}

void SlurmdUnit::step(SteadyTime now) {
  CommandOutput output;
  if (!running() || !runner_->poll(now, output)) {
    return;
  }
  if (has_run_ && output.succeeded()) {
    detail_ = describe_unit(unit_, output.out);
  }
}

std::vector<std::string> slurmd_programs(const std::string& bin_dir) {
  std::vector<std::string> candidates;
  if (!bin_dir.empty()) {
    candidates.push_back(bin_dir + "/slurmd");
    candidates.push_back(bin_dir + "/../sbin/slurmd");
  }
  const char* path = std::getenv("PATH");
  for (const auto directory : split(path != nullptr ? path : "", ':')) {
    if (directory.starts_with('/')) {
      candidates.push_back(std::string{directory} + "/slurmd");
    }
  }
  candidates.insert(candidates.end(), {"/usr/sbin/slurmd", "/usr/local/sbin/slurmd"});
  return candidates;
}

std::string parse_slurmd_version(std::string_view text) {
  const auto line = trim(text.substr(0, text.find('\n')));
  const auto space = line.rfind(' ');
  if (!line.starts_with("slurm") || space == std::string_view::npos) {
    return "";
  }
  const auto version = line.substr(space + 1);
  const bool number = !version.empty() && version.front() >= '0' && version.front() <= '9';
  return number ? valid_utf8(version) : std::string{};
}

void SlurmdVersion::query(std::vector<std::string> programs, SteadyTime now) {
  if (runner_->running()) {
    return;
  }
  CommandSpec spec;
  spec.argv = {"slurmd", "-V"};
  spec.programs = std::move(programs);
  spec.timeout = std::chrono::seconds{5};
  spec.max_output_bytes = 4096;
  (void)runner_->start(spec, now);  // no version is no error: it is only shown to people
}

bool SlurmdVersion::step(SteadyTime now) {
  CommandOutput output;
  if (!runner_->running() || !runner_->poll(now, output)) {
    return false;
  }
  auto version = output.succeeded() ? parse_slurmd_version(output.out) : "";
  if (version.empty() || version == version_) {
    return false;
  }
  version_ = std::move(version);
  return true;
}

}  // namespace slurmlet::slurm
