#include "base/trusted_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <list>

#include "base/detached_task.h"
#include "base/file.h"
#include "base/mountinfo.h"
#include "base/text.h"

namespace slurmlet {
namespace {

constexpr const char* kOtherOwner = "chown -h root";

template <typename Id>
bool has_id(const std::vector<Id>& ids, Id id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// With one, the group's bits are those of everybody that the list names.
bool has_access_list(int fd) {
  return ::getxattr(fmt::format("/proc/self/fd/{}", fd).c_str(), "system.posix_acl_access", nullptr,
                    0) > 0;
}

// As /proc/self/mountinfo has it; unlike stat(2) this needs no answer of a file system's server.
std::string mount_id(int fd) {
  const auto info = read_file(fmt::format("/proc/self/fdinfo/{}", fd));
  return std::string{value_behind("mnt_id:", info ? *info : "")};
}

bool is_fuse(int fd) {
  struct statfs info {};
  return ::fstatfs(fd, &info) != 0 || info.f_type == FUSE_SUPER_MAGIC;
}

Result<struct stat> stat_of(int fd, const std::string& name) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 ? Result<struct stat>{info} : errno_error(errno, "stat " + name);
}

class Walk {
 public:
  Walk(const std::filesystem::path& path, const TrustedUsers& users) : path_(path), users_(users) {}

  Result<UniqueFd> open() {
    if (!path_.is_absolute()) {
      return Error{
          Code::kInvalid,
          fmt::format("{} is not an absolute path, so it depends on the reader's working directory",
                      path_.string())};
    }
    touches_file(path_.native());
    push_front(path_);
    TRY(enter_root());
    while (!todo_.empty()) {
      const std::string name = std::move(todo_.front());
      todo_.pop_front();
      TRY(take(name));
    }
    return open_for_reading();
  }

 private:
  void push_front(const std::filesystem::path& path) {
    auto at = todo_.begin();
    for (const auto& part : path.relative_path()) {
      if (!part.empty() && part != ".") {
        todo_.insert(at, part.string());
      }
    }
  }

  Status enter_root() {
    at_ = "/";
    here_.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!here_) {
      return errno_error(errno, "open /");
    }
    mount_ = mount_id(here_.get());
    return check(here_.get());
  }

  // One more component: a directory or the file becomes the place where we are.
  Status take(const std::string& name) {
    std::string full = at_ == "/" ? "/" + name : at_ + "/" + name;
    UniqueFd next{::openat(here_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
    if (!next) {
      if (errno == ENOENT && open_to_all_) {
        return Error{
            Code::kInvalid,
            fmt::format("{} does not exist, and in {} every user may create it", full, at_)};
      }
      return errno_error(errno, "open " + path_.string());
    }
    TRY(check_mount(next.get(), full));
    const struct stat info = TRY(stat_of(next.get(), full));
    if (S_ISLNK(info.st_mode)) {
      return follow(next.get(), info, full);
    }
    at_ = std::move(full);
    here_ = std::move(next);
    return check(here_.get());
  }

  Status follow(int link, const struct stat& info, const std::string& full) {
    if (++links_ > kMaxLinks) {
      return errno_error(ELOOP, "open " + path_.string());
    }
    if (!owner_counts(info.st_uid)) {
      return rejected(full, info, kOtherOwner);
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(link, "", target.data(), target.size());
    if (length <= 0 || static_cast<std::size_t>(length) == target.size()) {
      return errno_error(length < 0 ? errno : ENAMETOOLONG, "follow " + full);
    }
    const std::filesystem::path to{std::string{target.data(), static_cast<std::size_t>(length)}};
    push_front(to);
    return to.is_absolute() ? enter_root() : Status{};
  }

  bool owner_counts(uid_t uid) const { return uid == ::geteuid() || has_id(users_.uids, uid); }

  // Before anything is read from the file system: a server of FUSE need not answer.
  Status check_mount(int fd, const std::string& full) {
    const std::string id = mount_id(fd);
    if (id == mount_) {
      return {};
    }
    mount_ = id;
    const auto mountinfo = read_mountinfo();
    const auto user = author_of_owners(mountinfo ? *mountinfo : "", id);
    if (user ? owner_counts(*user) : !is_fuse(fd)) {  // below chroot(2), not all are listed
      return {};
    }
    return Error{
        Code::kInvalid,
        fmt::format("{} is not used: {} is on a file system that {} mounted with FUSE and "
                    "that may show any owner; use a path elsewhere",
                    path_.string(), full, user ? fmt::format("user {}", *user) : "a user")};
  }

  Status check(int fd) {
    const struct stat info = TRY(stat_of(fd, at_));
    const bool sticky = S_ISDIR(info.st_mode) && (info.st_mode & S_ISVTX) != 0;
    open_to_all_ = sticky && (info.st_mode & (S_IWOTH | S_IWGRP)) != 0;
    const bool by_group = !sticky && (info.st_mode & S_IWGRP) != 0;
    const char* const fix = !owner_counts(info.st_uid)                      ? kOtherOwner
                            : !sticky && (info.st_mode & S_IWOTH) != 0      ? "chmod o-w"
                            : by_group && !has_id(users_.gids, info.st_gid) ? "chmod g-w"
                            : by_group && has_access_list(fd)               ? "setfacl -b"
                                                                            : nullptr;
    return fix == nullptr ? Status{} : rejected(at_, info, fix);
  }

  Error rejected(const std::string& component, const struct stat& info, const char* fix) const {
    return {Code::kInvalid,
            fmt::format("{} is not used, because users other than root and Slurm may change it: {} "
                        "has owner {}, group {}, mode {:04o}; {} {}",
                        path_.string(), component, info.st_uid, info.st_gid, info.st_mode & 07777U,
                        fix, component)};
  }

  // The very file that was checked; no name is resolved again.
  Result<UniqueFd> open_for_reading() {
    const struct stat info = TRY(stat_of(here_.get(), at_));
    if (!S_ISREG(info.st_mode)) {
      return Error{Code::kInvalid, path_.string() + " is not a regular file"};
    }
    UniqueFd file{::open(fmt::format("/proc/self/fd/{}", here_.get()).c_str(),
                         O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
    if (!file) {
      return errno_error(errno, "open " + path_.string());
    }
    return file;
  }

  const std::filesystem::path& path_;
  const TrustedUsers& users_;
  std::list<std::string> todo_;
  std::string at_;  // where we are, for people
  UniqueFd here_;
  std::string mount_;         // that it is on
  bool open_to_all_ = false;  // everybody may make entries here
  int links_ = 0;
};

}  // namespace

Result<UniqueFd> open_trusted(const std::filesystem::path& path, const TrustedUsers& users) {
  return Walk{path, users}.open();
}

Result<std::string> read_trusted_file(const std::filesystem::path& path, const TrustedUsers& users,
                                      std::size_t max_bytes) {
  const auto file = open_trusted(path, users);
  return file ? read_to_end(file->get(), path.string(), max_bytes)
              : Result<std::string>{file.error()};
}

bool same_trusted_file(const std::string& a, const std::string& b, const TrustedUsers& users) {
  if (a == b) {
    return true;
  }
  const auto one = open_trusted(a, users);
  const auto other = one ? open_trusted(b, users) : Result<UniqueFd>{one.error()};
  const auto at_one = one ? stat_of(one->get(), a) : one.error();
  const auto at_other = other ? stat_of(other->get(), b) : other.error();
  return at_one && at_other && at_one->st_dev == at_other->st_dev &&
         at_one->st_ino == at_other->st_ino;
}

}  // namespace slurmlet
