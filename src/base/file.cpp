#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "base/detached_task.h"
#include "base/text.h"
#include "base/unique_fd.h"

namespace slurmlet {

namespace {

constexpr std::string_view kTemporarySuffix = ".XXXXXX";  // mkostemp(3)

// Failures show when the file is made. std::filesystem would use mode 0777.
void make_directories(const std::filesystem::path& path) {
  std::error_code ignored;
  if (path.empty() || std::filesystem::exists(path, ignored)) {
    return;
  }
  make_directories(path.parent_path());
  if (::mkdir(path.c_str(), 0755) == 0) {
    ::chmod(path.c_str(), 0755);  // whatever the umask
  }
}

}  // namespace

Error errno_error(int error_number, const std::string& what) {
  Code code = Code::kInternal;
  if (error_number == ENOENT || error_number == ENOTDIR) {
    code = Code::kNotFound;
  } else if (error_number == EACCES || error_number == EPERM) {
    code = Code::kDenied;
  } else if (error_number == EISDIR) {
    code = Code::kInvalid;
  } else if (error_number == ETIMEDOUT) {
    code = Code::kTimeout;
  }
  return {code, what + ": " + std::generic_category().message(error_number)};
}

Result<std::string> read_to_end(int fd, const std::string& name, std::size_t max_bytes) {
  std::string content;
  char buffer[4096];
  while (true) {
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n == 0) {
      return content;
    }
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return errno_error(errno, "read " + name);
    }
    content.append(buffer, static_cast<std::size_t>(n));
    if (content.size() > max_bytes) {
      return Error{Code::kInvalid, fmt::format("{} is longer than {} bytes", name, max_bytes)};
    }
  }
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  touches_file(path.native());
  // Not blocking: to open a FIFO would wait for its writer.
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  struct stat info {};
  if ((!fd && errno != ENXIO) || (fd && ::fstat(fd.get(), &info) != 0)) {
    return errno_error(errno, "open " + path.string());
  }
  if (!S_ISREG(info.st_mode)) {  // ENXIO: a socket, or a device without a driver
    return Error{Code::kInvalid, path.string() + " is not a regular file"};
  }
  return read_to_end(fd.get(), path.string(), max_bytes);
}

Result<std::optional<StampedFile>> read_if_changed(const std::filesystem::path& path,
                                                   const std::optional<FileStamp>& before,
                                                   std::size_t max_bytes) {
  touches_file(path.native());
  // Before reading: a file replaced in between is read once more the next time.
  const auto stamp = file_stamp(path);
  if (stamp && stamp == before) {
    return std::optional<StampedFile>{};
  }
  return std::optional{StampedFile{stamp.value_or(FileStamp{}), TRY(read_file(path, max_bytes))}};
}

std::string read_trimmed(const std::filesystem::path& path) {
  auto content = read_file(path);
  return content ? std::string{trim(*content)} : std::string{};
}

Status write_file_atomic(const std::filesystem::path& path, std::string_view content, mode_t mode,
                         std::optional<FileOwner> owner) {
  touches_file(path.native());
  make_directories(path.parent_path());
  std::string temporary = path.string() + std::string{kTemporarySuffix};
  const UniqueFd fd{::mkostemp(temporary.data(), O_CLOEXEC)};
  if (!fd) {
    return errno_error(errno, "create " + temporary);
  }
  const auto fail = [&](const char* what) -> Status {
    const int saved = errno;
    ::unlink(temporary.c_str());
    return errno_error(saved, what + (" " + path.string()));
  };
  if (owner && ::fchown(fd.get(), owner->uid, owner->gid) != 0) {  // services may not chown
    return fail("chown");
  }
  if (::fchmod(fd.get(), mode) != 0) {
    return fail("chmod");
  }
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd.get(), content.data() + done, content.size() - done);
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return fail("write");
    }
    done += static_cast<std::size_t>(n);
  }
  if (::fsync(fd.get()) != 0) {
    return fail("fsync");
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return fail("rename");
  }
  return {};
}

std::optional<std::string> unfinished_target(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const bool is_temporary =
      dot != std::string::npos && name.size() - dot == kTemporarySuffix.size();
  return is_temporary ? std::optional{name.substr(0, dot)} : std::nullopt;
}

Result<std::vector<std::string>> list_directory(const std::filesystem::path& path) {
  struct Close {
    void operator()(DIR* dir) const { ::closedir(dir); }
  };
  touches_file(path.native());
  const std::unique_ptr<DIR, Close> dir{::opendir(path.c_str())};
  if (!dir) {
    const int saved = errno;
    struct stat info {};
    if (saved == ENOTDIR && ::stat(path.c_str(), &info) == 0) {  // itself, not one above it
      return Error{Code::kInvalid, path.string() + " is not a directory"};
    }
    return errno_error(saved, "open directory " + path.string());
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace slurmlet
