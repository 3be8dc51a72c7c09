#include "host/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/cpu_list.h"
#include "base/file.h"
#include "base/text.h"
#include "host/addresses.h"
#include "host/gpus.h"
#include "host/meminfo.h"

namespace slurmlet::host {
namespace {

// os-release values follow the shell's quoting: quotes around, and a backslash before what the
// shell would expand inside double quotes.
std::string unquote(std::string_view value) {
  value = trim(value);
  const bool quoted = value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
                      value.back() == value.front();
  const bool escapes = !quoted || value.front() == '"';
  if (quoted) {
    value = value.substr(1, value.size() - 2);
  }
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (escapes && value[i] == '\\' && i + 1 < value.size()) {
      ++i;
    }
    out += value[i];
  }
  return out;
}

std::string read_os_image(const Paths& paths) {
  for (const auto& file : {paths.etc / "os-release", paths.usr_lib / "os-release"}) {
    if (const auto content = read_file(file)) {
      const std::string name = pretty_name(*content);
      return name.empty() ? "Linux" : name;  // the default by os-release(5)
    }
  }
  return {};
}

std::string read_architecture() {
  utsname names{};
  return ::uname(&names) == 0 ? goarch(names.machine) : std::string{};
}

constexpr std::array<std::string_view, 4> kPlaceholders = {
    "03000200-0400-0500-0006-000700080009",  // AMI's default, seen on many boards
    "00020003-0004-0005-0006-000700080009",  // the same in the other byte order
    "12345678-1234-5678-90ab-cddeefaabbcc",
    "01234567-89ab-cdef-0123-456789abcdef",
};

bool has_uuid_form(std::string_view text) {
  if (text.size() != 36) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (dash ? text[i] != '-' : !hex) {
      return false;
    }
  }
  return true;
}

// 00000000-…, ffffffff-…, or another single digit.
bool is_one_digit(std::string_view uuid) {
  return std::all_of(uuid.begin(), uuid.end(),
                     [&](char c) { return c == '-' || c == uuid.front(); });
}

}  // namespace

std::string goarch(std::string_view uname_machine) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kNames = {{
      {"x86_64", "amd64"},
      {"aarch64", "arm64"},
      {"ppc64le", "ppc64le"},
      {"s390x", "s390x"},
      {"riscv64", "riscv64"},
      {"loongarch64", "loong64"},
      {"armv7l", "arm"},
      {"i686", "386"},
  }};
  for (const auto& [kernel, go] : kNames) {
    if (kernel == uname_machine) {
      return std::string{go};
    }
  }
  return std::string{uname_machine};
}

std::string pretty_name(std::string_view os_release) {
  std::string name;
  for (const std::string_view line : split(os_release, '\n')) {
    constexpr std::string_view kKey = "PRETTY_NAME=";
    if (trim(line).starts_with(kKey)) {
      name = unquote(trim(line).substr(kKey.size()));  // the last assignment counts, as in a shell
    }
  }
  return name;
}

node::MachineFacts read_machine(const Paths& paths, node::MachineFacts others) {
  const auto kernel = paths.proc / "sys/kernel";
  node::MachineFacts facts = std::move(others);
  facts.cpus = facts.memory_bytes = facts.swap_bytes = std::nullopt;
  facts.hostname = read_trimmed(kernel / "hostname");
  facts.machine_id = read_trimmed(paths.etc / "machine-id");
  if (facts.machine_id == "uninitialized") {
    facts.machine_id.clear();  // machine-id(5): the first boot is not complete
  }
  facts.boot_id = read_trimmed(kernel / "random/boot_id");
  facts.kernel_version = read_trimmed(kernel / "osrelease");
  facts.os_image = read_os_image(paths);
  facts.architecture = read_architecture();
  if (const auto cpus = parse_cpu_list(read_trimmed(paths.sys / "devices/system/cpu/online"))) {
    facts.cpus = static_cast<std::int64_t>(cpus->size());
  }
  if (const auto meminfo = read_file(paths.proc / "meminfo")) {
    facts.memory_bytes = meminfo_bytes(*meminfo, "MemTotal");
    facts.swap_bytes = meminfo_bytes(*meminfo, "SwapTotal");
  }
  facts.ip_addresses = read_addresses(paths);
  facts.gpus_by_pci_vendor = count_gpus_by_vendor(paths);
  return facts;
}

std::string usable_uuid(std::string_view text) {
  std::string uuid = to_lower(trim(text));
  const bool placeholder =
      std::find(kPlaceholders.begin(), kPlaceholders.end(), uuid) != kPlaceholders.end();
  if (!has_uuid_form(uuid) || is_one_digit(uuid) || placeholder) {
    return {};
  }
  return uuid;
}

std::string read_system_uuid(const Paths& paths) {
  const std::array<std::filesystem::path, 3> sources = {
      paths.sys / "class/dmi/id/product_uuid",
      paths.sys / "devices/virtual/dmi/id/product_uuid",
      paths.state_dir / "system-uuid",
  };
  for (const auto& source : sources) {
    if (std::string uuid = usable_uuid(read_trimmed(source)); !uuid.empty()) {
      return uuid;
    }
  }
  return {};
}

}  // namespace slurmlet::host
