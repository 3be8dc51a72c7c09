#include "slurm/sources/source_choice.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/side_call.h"
#include "base/text.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmSource;

std::vector<SourceOption> fixed(const SourceFacts& facts) {
  switch (facts.source) {
    case SlurmSource::kRest:
      return {{SlurmSource::kRest, facts.rest_url, "slurm.source is rest"}};
    case SlurmSource::kOperator:
      return {{SlurmSource::kOperator, "", "slurm.source is operator"}};
    case SlurmSource::kAuto:
    case SlurmSource::kCli:
      break;
  }
  return {{SlurmSource::kCli, facts.sinfo, "slurm.source is cli"}};
}

bool is_socket(const std::string& path) {
  touches_file(path);
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

bool is_program(const std::string& path) {
  touches_file(path);
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::vector<SourceOption> choose_sources(const SourceFacts& facts) {
  if (facts.source != SlurmSource::kAuto) {
    return fixed(facts);
  }
  std::vector<SourceOption> options{{SlurmSource::kOperator, "", "where the Node has one"}};
  if (!facts.rest_url.empty()) {
    options.push_back({SlurmSource::kRest, facts.rest_url, "slurm.restURL is set"});
  }
  if (!facts.sinfo.empty()) {
    options.push_back(
        {SlurmSource::kCli, facts.sinfo,
         facts.rest_url.empty() ? "no slurmrestd is configured" : "sinfo is installed"});
  }
  if (facts.rest_url.empty()) {
    for (const auto& socket : facts.sockets) {
      options.push_back(
          {SlurmSource::kRest, "unix:" + socket, "its socket is in a standard location"});
    }
  }
  if (options.size() == 1) {
    options.push_back({SlurmSource::kCli, "",
                       "slurm.restURL is not set, and slurmrestd has no socket in a standard "
                       "location"});
  }
  return options;
}

std::string describe(const SourceOption& option) {
  switch (option.kind) {
    case SlurmSource::kOperator:
      return "uses the record that slurmlet-operator writes to the Node: " + option.why;
    case SlurmSource::kRest:
      return "queries slurmctld through slurmrestd " + option.where + ": " + option.why;
    case SlurmSource::kAuto:
    case SlurmSource::kCli:
      break;
  }
  const std::string place = option.where.empty() ? "not installed" : option.where;
  return "queries slurmctld through sinfo (" + place + "): " + option.why;
}

const std::vector<std::string>& usual_rest_sockets() {
  // Debian's package; upstream's unit has unix:${sharedstatedir}/slurmrestd.socket, which its spec
  // file and a plain configure resolve differently.
  static const std::vector<std::string> paths{
      "/run/slurmrestd.socket", "/run/slurmrestd/slurmrestd.socket", "/var/lib/slurmrestd.socket",
      "/usr/com/slurmrestd.socket", "/usr/local/com/slurmrestd.socket"};
  return paths;
}

std::vector<std::string> existing_sockets(const std::vector<std::string>& paths) {
  std::vector<std::string> found;
  for (const auto& path : paths) {
    if (is_socket(path)) {
      found.push_back(path);
    }
  }
  return found;
}

std::string find_program(const std::string& program, const std::string& bin_dir) {
  const char* path = bin_dir.empty() ? std::getenv("PATH") : bin_dir.c_str();
  for (const auto directory : split(path == nullptr ? "" : path, ':')) {
    const std::string candidate = std::string{directory} + "/" + program;
    if (!directory.empty() && is_program(candidate)) {
      return candidate;
    }
  }
  return "";
}

}  // namespace slurmlet::slurm
