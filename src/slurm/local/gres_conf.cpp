// Which GPUs gres.conf is about: whose they are, and their device files.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "slurm/answers/hostlist.h"
#include "slurm/local/conf.h"
#include "slurm/local/conf_lines.h"

namespace slurmlet::slurm {
namespace {

std::string vendor_of_autodetect(std::string_view value) {
  const std::string mode = to_lower(value);
  if (mode == "nvml" || mode == "nvidia") {
    return "nvidia";
  }
  if (mode == "rsmi") {
    return "amd";
  }
  return mode == "oneapi" ? "intel" : "";
}

std::string vendor_of_file(std::string_view file) {
  if (file.starts_with("/dev/nvidia")) {
    return "nvidia";
  }
  return file.starts_with("/dev/kfd") ? "amd" : "";
}

constexpr std::size_t kMaxGpuFiles = 1024;

// What the lines about one node say.
struct GpuLines {
  std::string everywhere;            // AutoDetect of a line without NodeName
  std::optional<std::string> here;   // AutoDetect of a line with our NodeName: wins
  std::vector<std::string> vendors;  // of files
  std::vector<std::string> files;    // expanded

  void take(const ConfLine& line, const std::string& node_name) {
    const auto nodes = line.get("nodename");
    if ((nodes && !hostlist_contains(*nodes, node_name)) ||
        to_lower(line.get("name").value_or("gpu")) != "gpu") {
      return;
    }
    if (const auto mode = line.get("autodetect")) {
      (nodes ? here.emplace() : everywhere) = vendor_of_autodetect(*mode);
    }
    const std::string list = line.get("file").value_or("");
    for (const auto file : hostlist_elements(list)) {
      if (auto vendor = vendor_of_file(file); !vendor.empty()) {
        vendors.push_back(std::move(vendor));
      }
    }
    take_files(list);
  }

  // A list that cannot be expanded names no file.
  void take_files(const std::string& list) {
    const auto expanded = expand_hostlist(list, kMaxGpuFiles);
    for (const auto& file : expanded ? *expanded : std::vector<std::string>{}) {
      if (file.starts_with('/') && files.size() < kMaxGpuFiles &&
          std::find(files.begin(), files.end(), file) == files.end()) {
        files.push_back(file);
      }
    }
  }

  // "" unless all signs agree.
  std::string verdict() const {
    std::vector<std::string> all = vendors;
    if (const std::string detected = here.value_or(everywhere); !detected.empty()) {
      all.push_back(detected);
    }
    const bool agree = !all.empty() && std::all_of(all.begin(), all.end(), [&](const auto& vendor) {
      return vendor == all.front();
    });
    return agree ? all.front() : "";
  }
};

}  // namespace

GpuConf read_gpu_conf(const std::string& slurm_conf_path, const std::string& node_name,
                      const TrustedUsers& users) {
  const auto slash = slurm_conf_path.rfind('/');
  if (slash == std::string::npos) {
    return {};
  }
  GpuLines lines;
  const auto done = for_each_conf_line(slurm_conf_path.substr(0, slash + 1) + "gres.conf", users,
                                       [&](const ConfLine& line) { lines.take(line, node_name); });
  if (!done) {
    return {"", {}, done.error().code == Code::kInvalid ? done.error().message : ""};
  }
  return {lines.verdict(), lines.files};
}

}  // namespace slurmlet::slurm
