#include "metal3/drive_mount.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/unique_fd.h"

namespace slurmlet::metal3 {
namespace {

constexpr auto kTimeLimit = std::chrono::seconds{5};
constexpr int kReapMilliseconds = 1000;

// The child's message: one step byte; then an int errno if that step failed, else the two files,
// the first one ended by a NUL (JSON text holds none).
enum class Step : char { kNamespace = 'N', kPrivate = 'P', kMount = 'M', kRead = 'R', kDone = 'D' };

const char* name_of(char step) {
  switch (static_cast<Step>(step)) {
    case Step::kNamespace:
      return "make a mount namespace";
    case Step::kPrivate:
      return "make mounts private";
    case Step::kMount:
      return "mount";
    case Step::kRead:
      return "read openstack/latest/meta_data.json";
    case Step::kDone:
      break;
  }
  return "read the drive";
}

// ---- In the child. The parent may have threads, so only async-signal-safe calls: no memory is
// allocated and every string is made before the fork.

struct ChildPlan {
  const char* device;
  const char* mount_point;
  const char* meta_data;
  const char* network_data;
  int out;
};

bool send(int out, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(out, at, size);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return false;
    }
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

[[noreturn]] void give_up(int out, Step step) {
  const int error = errno;
  send(out, &step, 1);
  send(out, &error, sizeof error);
  ::_exit(1);
}

void send_file(int out, int file) {
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t n = ::read(file, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0 || !send(out, buffer.data(), static_cast<std::size_t>(n))) {
      return;
    }
  }
}

bool mount_drive(const ChildPlan& plan) {
  constexpr unsigned long kFlags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  return ::mount(plan.device, plan.mount_point, "iso9660", kFlags, nullptr) == 0 ||
         ::mount(plan.device, plan.mount_point, "vfat", kFlags, nullptr) == 0;
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  if (::unshare(CLONE_NEWNS) != 0) {
    give_up(plan.out, Step::kNamespace);
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    give_up(plan.out, Step::kPrivate);
  }
  if (!mount_drive(plan)) {
    give_up(plan.out, Step::kMount);
  }
  const int meta_data = ::open(plan.meta_data, O_RDONLY | O_CLOEXEC);
  if (meta_data < 0) {
    give_up(plan.out, Step::kRead);
  }
  const Step done = Step::kDone;
  send(plan.out, &done, 1);
  send_file(plan.out, meta_data);
  send(plan.out, "", 1);
  if (const int network_data = ::open(plan.network_data, O_RDONLY | O_CLOEXEC); network_data >= 0) {
    send_file(plan.out, network_data);
  }
  ::_exit(0);
}

// ---- In the parent.

// Everything the child writes. kTimeout when it does not come to an end in time.
Result<std::string> receive(int in) {
  const SteadyTime deadline = std::chrono::steady_clock::now() + kTimeLimit;
  std::string all;
  std::array<char, 4096> buffer{};
  while (all.size() <= 2 * kMaxFileBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{in, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, std::max(0, static_cast<int>(left.count())));
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready <= 0) {
      return Error{Code::kTimeout, "the device did not answer within 5s"};
    }
    const ssize_t n = ::read(in, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return all;
    }
    all.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return Error{Code::kInvalid, "the files are longer than 1 MiB"};
}

// A child that hangs in the kernel on a broken disk cannot be waited for: then it stays a zombie.
void end_child(pid_t child) {
  ::kill(child, SIGKILL);
  const UniqueFd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, child, 0))};
  if (pidfd) {
    pollfd waiting{pidfd.get(), POLLIN, 0};
    ::poll(&waiting, 1, kReapMilliseconds);
  }
  ::waitpid(child, nullptr, pidfd ? WNOHANG : 0);
}

Result<MountedFiles> interpret(const std::string& message) {
  if (message.empty()) {
    return Error{Code::kDenied, "the child that should mount it was killed"};
  }
  if (message[0] != static_cast<char>(Step::kDone)) {
    int error = 0;
    if (message.size() == 1 + sizeof error) {
      std::memcpy(&error, message.data() + 1, sizeof error);
    }
    return errno_error(error, name_of(message[0]));
  }
  const std::size_t end = message.find('\0', 1);
  if (end == std::string::npos) {
    return Error{Code::kInternal, "reading the drive ended early"};
  }
  return MountedFiles{message.substr(1, end - 1), message.substr(end + 1)};
}

}  // namespace

Result<MountedFiles> read_by_private_mount(const std::string& device,
                                           const std::string& mount_point) {
  const std::string directory = mount_point + "/" + kDriveDirectory + "/";
  const std::string meta_data = directory + kMetaDataFile;
  const std::string network_data = directory + kNetworkDataFile;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return errno_error(errno, "pipe");
  }
  const UniqueFd in{ends[0]};
  UniqueFd out{ends[1]};
  const pid_t child = ::fork();
  if (child < 0) {
    return errno_error(errno, "fork");
  }
  if (child == 0) {
    run_child(
        {device.c_str(), mount_point.c_str(), meta_data.c_str(), network_data.c_str(), out.get()});
  }
  out.reset();
  const auto message = receive(in.get());
  end_child(child);
  return message ? interpret(*message) : Result<MountedFiles>{message.error()};
}

}  // namespace slurmlet::metal3
