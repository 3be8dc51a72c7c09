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

// /dev/dri files are of AMD's or of Intel's.
constexpr std::string_view kNotNvidia = "not nvidia";

std::string vendor_of_file(std::string_view file) {
  if (file.starts_with("/dev/nvidia")) {
    return "nvidia";
  }
  if (file.starts_with("/dev/dri/")) {
    return std::string{kNotNvidia};
  }
  return file.starts_with("/dev/kfd") ? "amd" : "";
}

constexpr std::size_t kMaxGpuFiles = 1024;

// What the lines about one node say.
struct GpuLines {
  std::string everywhere;                       // AutoDetect of a line without NodeName
  std::optional<std::string> here;              // AutoDetect of a line with our NodeName: wins
  std::vector<std::string> vendors;             // of files
  std::vector<std::vector<std::string>> files;  // of each GPU, expanded

  void take(const ConfLine& line, const std::string& node_name) {
    const auto nodes = line.get("nodename");
    if ((nodes && !hostlist_contains(*nodes, node_name)) ||
        to_lower(line.get("name").value_or("gpu")) != "gpu") {
      return;
    }
    if (const auto mode = line.get("autodetect")) {
      (nodes ? here.emplace() : everywhere) = vendor_of_autodetect(*mode);
    }
    for (const std::string& file : take_list(line.get("file").value_or(""))) {
      const std::vector<std::string> gpu{file};
      if (std::find(files.begin(), files.end(), gpu) == files.end()) {
        add(gpu);
      }
    }
    add(take_list(line.get("multiplefiles").value_or("")));
  }

  // The files of a list; none where it cannot be expanded.
  std::vector<std::string> take_list(const std::string& list) {
    for (const auto file : hostlist_elements(list)) {
      if (auto vendor = vendor_of_file(file); !vendor.empty()) {
        vendors.push_back(std::move(vendor));
      }
    }
    auto expanded = expand_hostlist(list, kMaxGpuFiles);
    std::vector<std::string> out = expanded ? *std::move(expanded) : std::vector<std::string>{};
    std::erase_if(out, [](const std::string& file) { return !file.starts_with('/'); });
    return out;
  }

  void add(const std::vector<std::string>& gpu) {
    if (!gpu.empty() && files.size() < kMaxGpuFiles) {
      files.push_back(gpu);
    }
  }

  // "" unless all signs agree.
  std::string verdict() const {
    std::vector<std::string> all = vendors;
    if (const std::string detected = here.value_or(everywhere); !detected.empty()) {
      all.push_back(detected);
    }
    const bool is_nvidia = std::find(all.begin(), all.end(), "nvidia") != all.end();
    if (!is_nvidia) {
      std::erase(all, kNotNvidia);
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
