#include "base/mountinfo.h"

#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace slurmlet {
namespace {

// `type_and_options`: "fuse.sshfs host: rw,user_id=1000,group_id=1000". What only root mounts
// (virtiofs) has no user_id.
std::optional<uid_t> fuse_user(std::string_view type_and_options) {
  constexpr std::string_view kUser = "user_id=";
  const auto fields = split(type_and_options, ' ');
  if (!fields[0].starts_with("fuse") || fields.size() < 3) {
    return 0;
  }
  for (const auto option : split(fields[2], ',')) {
    if (option.starts_with(kUser)) {
      return parse_int<uid_t>(option.substr(kUser.size()));
    }
  }
  return 0;
}

bool lies_under(std::string_view path, std::string_view mount) {
  return mount == "/" ||
         (path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/'));
}

struct Mount {
  std::string_view device, root;
  std::string point;
};

// That `path` lies on; of two mounts on one place the later one is seen.
std::optional<Mount> mount_of(std::string_view mountinfo, std::string_view path) {
  std::optional<Mount> found;
  for (const auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    const auto fields = split(line.substr(0, dash), ' ');
    if (dash == std::string_view::npos || fields.size() < 5) {
      continue;
    }
    std::string point = unescape_mountinfo(fields[4]);
    if (lies_under(path, point) && (!found || point.size() >= found->point.size())) {
      found = Mount{fields[2], fields[3], std::move(point)};
    }
  }
  return found;
}

}  // namespace

Result<std::string> read_mountinfo(const std::filesystem::path& path) {
  return read_file(path, std::size_t{16} << 20);
}

std::optional<uid_t> author_of_owners(std::string_view mountinfo, std::string_view mount_id) {
  for (const auto line : split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    if (dash != std::string_view::npos && line.substr(0, line.find(' ')) == mount_id) {
      return fuse_user(line.substr(dash + 3));
    }
  }
  return std::nullopt;
}

std::string unescape_mountinfo(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string place_on_device(std::string_view mountinfo, std::string_view path) {
  const auto mount = mount_of(mountinfo, path);
  if (!mount) {
    return "";
  }
  const auto root = mount->root == "/" ? "" : unescape_mountinfo(mount->root);
  return std::string{mount->device} + " " + root +
         std::string{path.substr(mount->point == "/" ? 0 : mount->point.size())};
}

bool is_seen_alike(const std::string& proc, int pid, const std::string& path) {
  const auto own = read_mountinfo(proc + "/self/mountinfo");
  const auto other = read_mountinfo(proc + "/" + std::to_string(pid) + "/mountinfo");
  return !own || !other || place_on_device(*own, path) == place_on_device(*other, path);
}

}  // namespace slurmlet
