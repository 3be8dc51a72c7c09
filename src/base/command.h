#pragma once

// Runs one external program at a time, without a shell, and never blocks the caller's loop:
// start() returns at once, the caller polls wake_fds() and calls poll() when one is ready or the
// deadline has come. The child has its own process group, which is killed as a whole (SIGKILL)
// when the deadline passes, on overlong output and on destruction, and reaped. One that even then
// does not end (it hangs in the kernel) is reaped before the next start(), which fails until then.
// For the first tenth of a second only its end wakes: most say little, and what they say waits in
// the pipes. One that fills them goes on after that.
// A client that sleeps to connect again later may be ended then: checked at the tenth of a
// second, and each second after it. It is in nanosleep(2) without an open socket; with one it
// sleeps for another reason. A script that goes by its name is not checked.
// A thread of its own starts the child (detached_task.h): posix_spawn(3) suspends the thread that
// calls it until execve(2) is through, which a file system can hold up for ever, and no other
// thread. The child has none of our rights (child_limits.h) and of our environment only what is for
// it.
//
// Not thread-safe: one owner thread.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace slurmlet {

struct CommandSpec {
  std::vector<std::string> argv;               // argv[0] is looked up in PATH
  std::vector<std::string> programs = {};      // paths in its place: the first that is executable
  std::vector<std::string> extra_environment;  // "NAME=value", over what is inherited
  Duration timeout = std::chrono::seconds{10};
  // For the start alone: a program on a file system that does not answer, and the directories that
  // lead to our secrets, can hold up an exec for ever.
  Duration start_patience = std::chrono::seconds{2};
  std::size_t max_output_bytes = std::size_t{1} << 20;  // per stream
  bool ends_asleep = false;                             // while it waits to connect again
};

struct CommandOutput {
  int exit_code = 0;       // meaningless when signal != 0
  int signal = 0;          // the child was ended by this signal
  bool timed_out = false;  // or asleep
  bool asleep = false;
  bool too_long = false;  // output limit reached; what was read so far is kept
  std::string out;
  std::string err;
  Duration took{};

  // It ended by itself, with exit code 0. Its output may be too long even so.
  bool succeeded() const { return !timed_out && signal == 0 && exit_code == 0; }
};

struct Spawn;  // the start of a child process

// The face of Command, so that tests can answer in the place of a program.
class CommandRunner {
 public:
  virtual ~CommandRunner() = default;
  // kNotFound / kDenied when the program cannot be started; kInternal when one is running; kTimeout
  // when it does not start within start_patience (a file system hangs), and while an earlier one
  // cannot be started or ended.
  virtual Status start(const CommandSpec& spec, SteadyTime now) = 0;
  virtual bool running() const = 0;
  // When to poll() at the latest.
  virtual SteadyTime deadline() const = 0;
  // Descriptors that become readable when there is something to do; empty when not running.
  virtual std::vector<int> wake_fds() const = 0;
  // Drains what is there. Returns true exactly once, when the command has ended (or was killed),
  // with `output` filled. Never blocks for longer than the kernel needs to end a killed child, and
  // not beyond 100 ms for that.
  virtual bool poll(SteadyTime now, CommandOutput& output) = 0;
};

class Command : public CommandRunner {
 public:
  Command() = default;
  ~Command() override;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Status start(const CommandSpec& spec, SteadyTime now) override;
  bool running() const override { return pid_ > 0; }
  SteadyTime deadline() const override {
    return std::min({deadline_, wake_on_output_at_, checks_at_});
  }
  std::vector<int> wake_fds() const override;
  bool poll(SteadyTime now, CommandOutput& output) override;

 private:
  void kill_group();
  void end(SteadyTime now);
  bool drain(UniqueFd& fd, std::string& into);
  int pid_ = -1;
  int unkillable_ = -1;             // was killed and has not ended
  std::shared_ptr<Spawn> hanging_;  // begun, and neither started nor failed
  UniqueFd pidfd_;
  UniqueFd out_;
  UniqueFd err_;
  std::string name_;  // of its file
  SteadyTime started_{};
  SteadyTime deadline_{};
  SteadyTime wake_on_output_at_{};  // when output wakes as well; kNever once it does
  SteadyTime checks_at_{};          // whether it sleeps; kNever = not
  bool may_check_ = true;           // until that was denied
  std::size_t max_output_ = 0;
  CommandOutput current_;
};

// Runs to the end, waiting; for start-up and subcommands, not for loops.
Result<CommandOutput> run_command(const CommandSpec& spec);
Result<CommandOutput> run_command(Command& command, const CommandSpec& spec);

}  // namespace slurmlet
