#include "slurm/sources/feed_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/read_fd.h"
#include "slurm/sources/feed_format.h"

namespace slurmlet::slurm {
namespace {

constexpr const char* kTemporary = ".new";
constexpr const char* kLock = ".lock";

Result<UniqueFd> open_directory(int at, const std::string& name, const std::string& shown) {
  UniqueFd fd{::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!fd) {
    return errno == ENOTDIR || errno == ELOOP
               ? Error{Code::kInvalid,
                       shown + " is not a directory (symbolic links are not followed)"}
               : errno_error(errno, "open directory " + shown);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return errno_error(errno, "stat " + shown);
  }
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return Error{Code::kDenied,
                 fmt::format("{} belongs to user {}, who could change what all nodes see; it must "
                             "be owned by root or by slurmlet's user",
                             shown, info.st_uid)};
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return Error{
        Code::kDenied,
        fmt::format("every user may write to {} and so change what all nodes see; chmod o-w {}",
                    shown, shown)};
  }
  return fd;
}

// Nothing on file systems without locks.
Result<UniqueFd> take_lock(int directory, const std::string& path) {
  UniqueFd fd{
      ::openat(directory, kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR)};
  if (!fd) {
    return errno_error(errno, "create a file in " + path);
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Error{Code::kConflict, "another slurmlet feed writes to " + path};
  }
  return fd;
}

Status write_at(int directory, const std::string& name, std::string_view content) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd{::openat(directory, kTemporary, kFlags, 0644)};
  if (!fd && errno == EEXIST) {  // left by a crash
    ::unlinkat(directory, kTemporary, 0);
    fd.reset(::openat(directory, kTemporary, kFlags, 0644));
  }
  const auto fail = [&]() -> Status {
    const int saved = errno;
    ::unlinkat(directory, kTemporary, 0);
    return errno_error(saved, "write " + name);
  };
  if (!fd || ::fchmod(fd.get(), 0644) != 0) {
    return fail();
  }
  while (!content.empty()) {
    const ssize_t n = ::write(fd.get(), content.data(), content.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return fail();
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  // A network file system may tell of a full disk only here.
  if (::close(fd.release()) != 0 ||
      ::renameat(directory, kTemporary, directory, name.c_str()) != 0) {
    return fail();
  }
  return {};
}

}  // namespace

Result<std::string> read_file_at(int directory, const char* name, std::size_t max_bytes) {
  const UniqueFd fd{
      ::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)};
  if (!fd) {
    return errno == ELOOP ? Error{Code::kInvalid, fmt::format("{} is a symbolic link", name)}
                          : errno_error(errno, fmt::format("open {}", name));
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error{Code::kInvalid, fmt::format("{} is not a file", name)};
  }
  return read_to_end(fd.get(), name, max_bytes);
}

Result<FeedDirectory> FeedDirectory::open(const std::string& path) {
  const bool made = ::mkdir(path.c_str(), 0755) == 0;
  if (!made && errno != EEXIST) {
    return errno_error(errno, "make directory " + path);
  }
  // Without the slash at the end, which would make a link to a directory one.
  std::string plain = path;
  while (plain.size() > 1 && plain.ends_with('/')) {
    plain.pop_back();
  }
  auto top = open_directory(AT_FDCWD, plain, plain);
  if (!top) {
    return top.error();
  }
  if (made) {
    ::fchmod(top->get(), 0755);  // whatever the mask is: a service often has 0077
  }
  auto lock = take_lock(top->get(), plain);
  if (!lock) {
    return lock.error();
  }
  if (::mkdirat(top->get(), kFeedNodes, 0755) != 0 && errno != EEXIST) {
    return errno_error(errno, "make directory " + plain + "/" + kFeedNodes);
  }
  auto nodes = open_directory(top->get(), kFeedNodes, plain + "/" + kFeedNodes);
  if (!nodes) {
    return nodes.error();
  }
  ::fchmod(nodes->get(), 0755);
  return FeedDirectory{plain, *std::move(top), *std::move(nodes), *std::move(lock)};
}

Result<std::set<std::string>> FeedDirectory::names() const {
  const int copy = ::openat(nodes_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct Close {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };
  const std::unique_ptr<DIR, Close> dir{copy < 0 ? nullptr : ::fdopendir(copy)};
  if (!dir) {
    return errno_error(errno, "open directory " + path_ + "/" + kFeedNodes);
  }
  std::set<std::string> out;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string name = entry->d_name;
    // Anything else (".new", NFS's ".nfs…") is not a record.
    if (is_feed_file_name(name)) {
      out.insert(name);
    }
  }
  return out;
}

Result<FeedChanges> FeedDirectory::replace(const std::map<std::string, std::string>& records) {
  auto present = names();
  if (!present) {
    return present.error();
  }
  FeedChanges changes;
  for (const auto& [name, text] : records) {
    const bool there = present->erase(name) > 0;
    auto known = known_.find(name);
    if (there && known == known_.end()) {  // of an earlier run
      if (auto old = read_file_at(nodes_.get(), name.c_str(), kMaxFeedFileBytes)) {
        known = known_.emplace(name, *std::move(old)).first;
      }
    }
    if (there && known != known_.end() && known->second == text) {
      continue;
    }
    if (auto written = write_at(nodes_.get(), name, text); !written) {
      known_.erase(name);
      return written.error().with_prefix(path_ + "/" + kFeedNodes);
    }
    known_[name] = text;
    ++changes.written;
  }
  for (const auto& name : *present) {
    known_.erase(name);
    changes.removed += ::unlinkat(nodes_.get(), name.c_str(), 0) == 0 ? 1 : 0;
  }
  return changes;
}

Status FeedDirectory::write_header(std::string_view text) {
  if (auto written = write_at(top_.get(), kFeedHeaderFile, text); !written) {
    return written.error().with_prefix(path_);
  }
  return {};
}

std::optional<std::string> FeedDirectory::read_header() const {
  auto text = read_file_at(top_.get(), kFeedHeaderFile, kMaxFeedFileBytes);
  return text ? std::optional{*std::move(text)} : std::nullopt;
}

}  // namespace slurmlet::slurm
