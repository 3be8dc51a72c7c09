#include "base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/child_limits.h"
#include "base/detached_task.h"
#include "base/file.h"
#include "base/text.h"

extern char** environ;

namespace slurmlet {
namespace {

constexpr int kPipeBytes = 1 << 20;  // what Linux allows anybody

std::vector<std::string> child_environment(const CommandSpec& spec) {
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  const auto replaced = [&](std::string_view name) {
    return std::any_of(spec.extra_environment.begin(), spec.extra_environment.end(),
                       [&](const std::string& extra) { return name_of(extra) == name; });
  };
  std::vector<std::string> environment = spec.extra_environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (inherited_by_children(name_of(*entry)) && !replaced(name_of(*entry))) {
      environment.emplace_back(*entry);
    }
  }
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& s : strings) {
    out.push_back(s.data());
  }
  out.push_back(nullptr);
  return out;
}

struct SpawnSettings {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnSettings(int out_fd, int err_fd) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
    posix_spawnattr_init(&attributes);
    // Own process group; no signal blocked or ignored (our threads block all of them).
    posix_spawnattr_setpgroup(&attributes, 0);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
};

// Leaves the child to be reaped.
bool has_ended(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == pid;
}

// The kernel ends a killed child at once, unless it hangs in a system call that cannot be broken
// off (a file system that does not answer). Its status, or nothing after this patience.
std::optional<int> reap_killed(pid_t pid) {
  constexpr int kPatienceMs = 100;
  const UniqueFd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  pollfd end{pidfd.get(), POLLIN, 0};
  (void)::poll(&end, 1, kPatienceMs);
  int status = 0;
  return ::waitpid(pid, &status, WNOHANG) == pid ? std::optional{status} : std::nullopt;
}

// A quick query has ended by then.
constexpr std::chrono::milliseconds kQuietOutput{100};
constexpr std::chrono::seconds kNextCheck{1};

Result<bool> is_asleep(const std::string& proc) {
  const std::string state = TRY(read_file(proc + "syscall"));
  const auto call = parse_int<long>(state.substr(0, state.find(' ')));
  return call && (*call == SYS_clock_nanosleep || *call == SYS_nanosleep);
}

bool has_socket(const std::string& proc) {
  std::error_code error;
  for (std::filesystem::directory_iterator at{proc + "fd", error}, end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    if (std::filesystem::read_symlink(at->path(), gone).native().starts_with("socket:")) {
      return true;
    }
  }
  return static_cast<bool>(error);
}

// kDenied where the kernel lets nobody trace (yama/ptrace_scope): it logs each attempt.
Result<bool> waits_to_connect(pid_t pid, const std::string& name) {
  const std::string proc = "/proc/" + std::to_string(pid) + "/";
  std::error_code error;
  return TRY(is_asleep(proc)) && !has_socket(proc) &&
         std::filesystem::read_symlink(proc + "exe", error).filename() == name;
}

Error hangs(const std::string& what) {
  return {Code::kTimeout,
          what + " hangs in the kernel and cannot be killed; is a file system not responding?"};
}

// Where execvp(3) searches.
std::vector<std::string> in_path(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return {name};
  }
  std::vector<std::string> found;
  const char* path = std::getenv("PATH");
  for (const auto directory : split(path == nullptr ? "/bin:/usr/bin" : path, ':')) {
    found.push_back(directory.empty() ? "./" + name : std::string{directory} + "/" + name);
  }
  return found;
}

}  // namespace

// Shared with the thread that starts the child, which may outlast the patience of its owner.
struct Spawn : SideWork {
  std::vector<std::string> programs, arguments, environment;
  UniqueFd out, err;       // the child's ends
  bool abandoned = false;  // nobody waits: a child that starts all the same is killed
  bool started = false;    // or failed
  bool denied = false;     // one of the programs may not be run
  int failed = 0;          // errno
  pid_t pid = -1;

  // The first of the programs that may be run; "" without one.
  std::string find() {
    for (const auto& program : programs) {
      touches_file(program);
      if (::access(program.c_str(), X_OK) == 0) {
        return program;
      }
      denied = denied || errno == EACCES;
    }
    return "";
  }

  // Gives up the thread's rights first (child_limits.h).
  void run() {
    const SpawnSettings settings{out.get(), err.get()};
    pid_t child = -1;
    keep_descriptors_from_children();
    int problem = confine_thread();
    const std::string program = problem == 0 ? find() : "";
    if (problem == 0 && program.empty()) {
      problem = denied ? EACCES : ENOENT;
    } else if (problem == 0) {
      problem = ::posix_spawnp(&child, program.c_str(), &settings.actions, &settings.attributes,
                               pointers(arguments).data(), pointers(environment).data());
    }
    out.reset();
    err.reset();
    const std::scoped_lock lock{mutex};
    pid = child;
    failed = problem;
    started = true;
    if (abandoned && failed == 0) {
      ::kill(-pid, SIGKILL);
      (void)::waitpid(pid, nullptr, 0);
    }
    ended_now.notify_one();
  }

  // Whether it started or failed within the patience.
  bool wait_for_start(Duration patience) {
    std::unique_lock lock{mutex};
    abandoned = !ended_now.wait_for(lock, patience, [this] { return started; });
    return !abandoned;
  }
};

namespace {

Error does_not_start(Spawn& spawn) {
  const std::string& name = spawn.arguments.front();
  const std::string file = spawn.touched();
  return {Code::kTimeout,
          (file == name ? "" : name + " cannot be started: ") + file + " does not answer"};
}

}  // namespace

Command::~Command() {
  if (pid_ > 0) {
    kill_group();
    (void)reap_killed(pid_);
  }
}

Status Command::start(const CommandSpec& spec, SteadyTime now) {
  if (running()) {
    return Error{Code::kInternal, "a command is still running"};
  }
  if (unkillable_ > 0) {
    if (::waitpid(unkillable_, nullptr, WNOHANG) == 0) {
      return hangs("an earlier command");
    }
    unkillable_ = -1;
  }
  if (hanging_ && !hanging_->wait(Duration::zero())) {
    return does_not_start(*hanging_);
  }
  hanging_.reset();
  int out_pipe[2];
  int err_pipe[2];
  if (::pipe2(out_pipe, O_CLOEXEC) != 0) {
    return errno_error(errno, "pipe");
  }
  UniqueFd out_read{out_pipe[0]};
  UniqueFd out_write{out_pipe[1]};
  if (::pipe2(err_pipe, O_CLOEXEC) != 0) {
    return errno_error(errno, "pipe");
  }
  UniqueFd err_read{err_pipe[0]};
  ::fcntl(out_read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err_read.get(), F_SETFL, O_NONBLOCK);
  // A child with a long answer ends although its reader is busy with calls that block.
  ::fcntl(out_read.get(), F_SETPIPE_SZ, kPipeBytes);

  const auto spawn = std::make_shared<Spawn>();
  spawn->programs = spec.programs.empty() ? in_path(spec.argv.front()) : spec.programs;
  spawn->arguments = spec.argv;
  spawn->environment = child_environment(spec);
  spawn->out = std::move(out_write);
  spawn->err.reset(err_pipe[1]);
  if (!run_aside(spawn, [raw = spawn.get()] { raw->run(); })) {
    return errno_error(EAGAIN, "run " + spec.argv.front());
  }
  if (!spawn->wait_for_start(spec.start_patience)) {
    hanging_ = spawn;
    return does_not_start(*spawn);
  }
  if (spawn->failed != 0) {
    return errno_error(spawn->failed, "run " + spec.argv.front());
  }
  const pid_t pid = spawn->pid;
  pid_ = pid;
  name_ = std::filesystem::path{spec.argv.front()}.filename();
  pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  out_ = std::move(out_read);
  err_ = std::move(err_read);
  started_ = now;
  deadline_ = now + spec.timeout;
  wake_on_output_at_ = now + kQuietOutput;
  checks_at_ = spec.ends_asleep && may_check_ ? wake_on_output_at_ : kNever;
  max_output_ = spec.max_output_bytes;
  current_ = {};
  return {};
}

std::vector<int> Command::wake_fds() const {
  std::vector<int> fds;
  for (const UniqueFd* fd : {&pidfd_, &out_, &err_}) {
    if (running() && *fd && (fd == &pidfd_ || !pidfd_ || wake_on_output_at_ == kNever)) {
      fds.push_back(fd->get());
    }
  }
  return fds;
}

void Command::kill_group() {
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

// Reads until nothing more is there; closes the descriptor at the end of the stream. Returns false
// when the limit is passed.
bool Command::drain(UniqueFd& fd, std::string& into) {
  char buffer[16384];
  while (fd) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof buffer);
    if (n > 0) {
      const auto room = max_output_ - into.size();
      into.append(buffer, std::min(static_cast<std::size_t>(n), room));
      if (static_cast<std::size_t>(n) > room) {
        return false;
      }
    } else if (n < 0 && errno == EINTR) {
      continue;
    } else if (n < 0 && errno == EAGAIN) {
      return true;
    } else {
      fd.reset();
    }
  }
  return true;
}

bool Command::poll(SteadyTime now, CommandOutput& output) {
  if (!running()) {
    return false;
  }
  if (now >= wake_on_output_at_) {
    wake_on_output_at_ = kNever;
  }
  // Checked before draining: the output of an ended child is in the pipes.
  const bool ended = has_ended(pid_);
  if (now >= checks_at_) {
    const auto waits = ended ? Result{false} : waits_to_connect(pid_, name_);
    current_.asleep = waits && *waits;
    may_check_ = waits || waits.error().code != Code::kDenied;
    checks_at_ = may_check_ ? now + kNextCheck : kNever;
  }
  const bool fits = drain(out_, current_.out) && drain(err_, current_.err);
  if (!ended && fits && !current_.asleep && now < deadline_) {
    return false;
  }
  current_.too_long = !fits;
  current_.timed_out = fits && !ended;
  end(now);
  output = std::move(current_);
  return true;
}

// Reaps the child, whether or not it has ended by itself.
void Command::end(SteadyTime now) {
  // Before the child is reaped, while its number can be nobody else's: grandchildren go too.
  kill_group();
  if (const auto status = reap_killed(pid_)) {
    current_.exit_code = WIFEXITED(*status) ? WEXITSTATUS(*status) : 0;
    current_.signal = WIFSIGNALED(*status) ? WTERMSIG(*status) : 0;
  } else {
    unkillable_ = pid_;
    current_.signal = SIGKILL;
  }
  current_.took = now - started_;
  pid_ = -1;
  pidfd_.reset();
  out_.reset();
  err_.reset();
}

Result<CommandOutput> run_command(const CommandSpec& spec) {
  Command command;
  return run_command(command, spec);
}

Result<CommandOutput> run_command(Command& command, const CommandSpec& spec) {
  TRY(command.start(spec, std::chrono::steady_clock::now()));
  CommandOutput output;
  while (true) {
    std::vector<pollfd> entries;
    for (const int fd : command.wake_fds()) {
      entries.push_back({fd, POLLIN, 0});
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        command.deadline() - std::chrono::steady_clock::now());
    ::poll(entries.data(), entries.size(),
           static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 60000)));
    if (command.poll(std::chrono::steady_clock::now(), output)) {
      return output;
    }
  }
}

}  // namespace slurmlet
