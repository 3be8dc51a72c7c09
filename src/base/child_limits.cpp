#include "base/child_limits.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>

#include "base/file.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace slurmlet {
namespace {

namespace fs = std::filesystem;

// To read and write; and to remove and make entries of all kinds. Running and listing stay free.
constexpr std::uint64_t kFile = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr std::uint64_t kChangeDirectory = 0x1ff0;
// Since the third version of the interface; the headers of Linux 5.14 do not have it.
constexpr std::uint64_t kTruncate = 1U << 14;

long landlock_version() {
  static const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version;
}

std::uint64_t handled() {
  return kFile | kChangeDirectory | (landlock_version() >= 3 ? kTruncate : 0);
}

std::uint64_t rights_of_a_file() { return handled() & ~kChangeDirectory; }

bool is_below(const fs::path& path, const fs::path& directory) {
  const auto [in_directory, _] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return in_directory == directory.end();
}

// Landlock only allows, so all is allowed beside the secrets and the directories that lead there:
// the entries of each such directory one by one. Made for each child, as links and mounts change.
class Ruleset {
 public:
  explicit Ruleset(const std::vector<fs::path>& secrets) {
    for (const auto& path : secrets) {
      std::error_code error;
      auto real = fs::weakly_canonical(path, error);  // where the name leads now
      if (!error && real.has_relative_path()) {
        secrets_.push_back(real.has_filename() ? real : real.parent_path());
      }
    }
    landlock_ruleset_attr attributes{};
    attributes.handled_access_fs = handled();
    fd_.reset(static_cast<int>(
        ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
    if (fd_) {
      allow_around("/");
    }
  }

  // The calling thread; 0 or the errno.
  int restrict_thread() const {
    return fd_ && ::syscall(SYS_landlock_restrict_self, fd_.get(), 0) == 0 ? 0 : errno;
  }

 private:
  void allow_around(const fs::path& directory) {
    const auto names = list_directory(directory);
    for (const auto& name : names ? *names : std::vector<std::string>{}) {
      const fs::path entry = directory / name;
      if (std::ranges::find(secrets_, entry) != secrets_.end()) {
        continue;
      }
      if (std::ranges::any_of(secrets_,
                              [&](const fs::path& secret) { return is_below(secret, entry); })) {
        allow_around(entry);
      } else {
        allow(entry);
      }
    }
  }

  // What cannot be allowed stays denied: only that entry is lost. No stat, which would wait for a
  // network mount's server: a non-directory (EINVAL) gets a file's rights.
  void allow(const fs::path& entry) const {
    const UniqueFd opened{::open(entry.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
    landlock_path_beneath_attr rule{handled(), opened.get()};
    if (opened &&
        ::syscall(SYS_landlock_add_rule, fd_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) {
      rule.allowed_access = rights_of_a_file();
      (void)::syscall(SYS_landlock_add_rule, fd_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
  }

  std::vector<fs::path> secrets_;  // resolved
  UniqueFd fd_;
};

struct Secrets {
  std::mutex mutex;
  std::vector<fs::path> paths;
};

Secrets& hidden() {
  static Secrets all;
  return all;
}

}  // namespace

void hide_from_children(const std::vector<fs::path>& secrets) {
  const std::scoped_lock lock{hidden().mutex};
  auto& all = hidden().paths;
  for (const auto& path : secrets) {
    if (std::find(all.begin(), all.end(), path) == all.end()) {
      all.push_back(path);
    }
  }
}

int confine_thread() {
  if (::geteuid() == 0) {
    return 0;
  }
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  (void)::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  std::unique_lock lock{hidden().mutex};
  const std::vector<fs::path> secrets = hidden().paths;
  lock.unlock();  // a ruleset may hang in a file system that does not answer
  return secrets.empty() || landlock_version() <= 0 ? 0 : Ruleset{secrets}.restrict_thread();
}

std::string children_not_confined() {
  if (::geteuid() == 0) {
    return "slurmlet runs as root, and so do the Slurm commands that it starts";
  }
  if (landlock_version() <= 0) {
    return "the kernel has no Landlock";
  }
  return "";
}

void protect_own_memory() { (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

bool inherited_by_children(std::string_view name) {
  // RES_OPTIONS is the unit's own; LD_LIBRARY_PATH is for a Slurm outside the usual places.
  constexpr std::array<std::string_view, 6> kNames{
      "PATH", "LANG", "TZ", "LD_LIBRARY_PATH", "RES_OPTIONS", "SLURM_CONF_SERVER"};
  return name.starts_with("LC_") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

void keep_descriptors_from_children() {
  const auto names = list_directory("/proc/self/fd");
  for (const auto& name : names ? *names : std::vector<std::string>{}) {
    if (const auto fd = parse_int<int>(name); fd && *fd > STDERR_FILENO) {
      (void)::fcntl(*fd, F_SETFD, FD_CLOEXEC);
    }
  }
}

}  // namespace slurmlet
