#include "base/command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "fakes/child_process.h"
#include "fakes/temp_tree.h"
#include "fakes/tracer.h"

namespace slurmlet {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr int kPatienceMs = 20000;

CommandSpec shell(const std::string& script) {
  CommandSpec spec;
  spec.argv = {"sh", "-c", script};
  spec.start_patience = minutes{1};  // a busy machine is not one that hangs
  return spec;
}

// Waits for one of the descriptors; false if none came.
bool wait_for(const std::vector<int>& fds) {
  std::vector<pollfd> entries;
  for (const int fd : fds) {
    entries.push_back({fd, POLLIN, 0});
  }
  return ::poll(entries.data(), entries.size(), kPatienceMs) > 0;
}

bool wait_for_end(int pid) {
  const UniqueFd pidfd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  return !pidfd || wait_for({pidfd.get()});  // none: it has been reaped already
}

// 0: the descriptor is no pidfd of a process that lives.
int process_behind(int pidfd) {
  std::ifstream about{"/proc/self/fdinfo/" + std::to_string(pidfd)};
  for (std::string key; about >> key;) {
    if (int pid = 0; key == "Pid:" && about >> pid) {
      return std::max(pid, 0);
    }
  }
  return 0;
}

bool no_child_left() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

std::size_t open_fds() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// Each test leaves neither a child nor a descriptor behind. Fewer descriptors than before: the last
// thread of an earlier test let go of its own (detached_task.h).
class CommandTest : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(no_child_left());
    EXPECT_LE(open_fds(), fds_before_);
  }

 private:
  std::size_t fds_before_ = open_fds();
};

TEST_F(CommandTest, GivesBothStreamsAndTheExitCode) {
  const auto result = run_command(shell("echo to-out; echo to-err >&2; exit 3"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, "to-out\n");
  EXPECT_EQ(result->err, "to-err\n");
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->signal, 0);
  EXPECT_FALSE(result->timed_out);
  EXPECT_FALSE(result->too_long);
  EXPECT_GT(result->took, Duration::zero());
}

TEST_F(CommandTest, GivesTheSignal) {
  const auto result = run_command(shell("kill -TERM $$"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->signal, SIGTERM);
  EXPECT_FALSE(result->timed_out);
}

TEST_F(CommandTest, ArgumentsAreNotSeenByAShell) {
  CommandSpec spec;
  spec.argv = {"printf", "%s|", "a b", "$HOME", ";exit 1"};
  const auto result = run_command(spec);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, "a b|$HOME|;exit 1|");
}

TEST_F(CommandTest, StandardInputIsEmpty) {
  const auto result = run_command(shell("wc -c"));
  ASSERT_TRUE(result);
  EXPECT_EQ(trim(result->out), "0");
}

TEST_F(CommandTest, TheEnvironmentIsOursWithChanges) {
  ::setenv("LC_SLURMLET_KEPT", "kept", 1);
  ::setenv("LC_SLURMLET_OVER", "ours", 1);
  CommandSpec spec = shell(
      "echo $LC_SLURMLET_KEPT/$LC_SLURMLET_OVER/$SLURMLET_NEW;"
      "env | grep -c ^LC_SLURMLET_OVER=");
  spec.extra_environment = {"LC_SLURMLET_OVER=theirs", "SLURMLET_NEW=a=b"};
  const auto result = run_command(spec);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, "kept/theirs/a=b\n1\n");
}

TEST_F(CommandTest, TheChildHasNoneOfOurDescriptors) {
  const UniqueFd ours{::dup(1)};  // survives an exec, as those of libraries do
  ASSERT_GT(ours.get(), 2);
  const auto result = run_command(shell("ls /proc/$$/fd"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out, "0\n1\n2\n");
}

TEST_F(CommandTest, OnlyWhatIsMeantForAChildIsInherited) {
  // Ours; another cluster, node, credential or form of the answer than slurmlet asks for.
  const std::vector<std::string> ours{
      "NOTIFY_SOCKET",   "CREDENTIALS_DIRECTORY", "SLURMLET_TEST_OURS",
      "LD_DEBUG_OUTPUT", "LD_PRELOAD_TEST",       "SLURM_CONF",
      "SLURM_CLUSTERS",  "SLURMD_NODENAME",       "SLURM_JWT",
      "SLURM_SACK_KEY",  "SLURM_SACK_JWKS",       "SLURM_SACK_SOCKET",
      "SINFO_FORMAT",    "SINFO_PARTITION",       "SINFO_FEDERATION",
      "SCONTROL_ALL"};
  for (const auto& name : ours) {
    ::setenv(name.c_str(), "x", 1);
  }
  CommandSpec spec;
  spec.argv = {"env"};
  const auto result = run_command(spec);
  ASSERT_TRUE(result);
  for (const auto& name : ours) {
    EXPECT_THAT('\n' + result->out, Not(HasSubstr('\n' + name + '='))) << name;
  }
  EXPECT_THAT(result->out, HasSubstr("PATH="));
}

// Our threads block signals; a child that inherited that could not be interrupted.
TEST_F(CommandTest, TheChildBlocksAndIgnoresNoSignals) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto old_handler = ::signal(SIGPIPE, SIG_IGN);
  const auto result = run_command(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status"));
  ::signal(SIGPIPE, old_handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(result);
  // 32 and 33 are the C library's own and stay as they were.
  EXPECT_THAT(result->out, MatchesRegex("SigBlk:\t0000000000000000\n"
                                        "SigIgn:\t0000000180000000\n|"
                                        "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"));
}

TEST_F(CommandTest, AMissingProgramIsNotFound) {
  CommandSpec spec;
  for (const char* name : {"slurmlet-no-such-program", "/nonexistent/sinfo"}) {
    spec.argv = {name};
    const auto result = run_command(spec);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kNotFound);
    EXPECT_THAT(result.error().message, HasSubstr(name));
  }
}

TEST_F(CommandTest, AFileThatIsNoProgramIsDenied) {
  fakes::TempTree tree;
  tree.file("sinfo", "not executable", 0644);
  CommandSpec spec;
  spec.argv = {tree.path("sinfo").string()};
  const auto result = run_command(spec);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kDenied);
}

TEST_F(CommandTest, OneAtATime) {
  Command command;
  ASSERT_TRUE(command.start(shell("exec sleep 100"), steady_clock::now()));
  EXPECT_TRUE(command.running());
  const Status second = command.start(shell("true"), steady_clock::now());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kInternal);
}

TEST_F(CommandTest, PollGivesTheEndExactlyOnceAndStartsAgain) {
  Command command;
  CommandOutput output;
  EXPECT_FALSE(command.poll(steady_clock::now(), output));
  EXPECT_THAT(command.wake_fds(), IsEmpty());
  for (const char* word : {"one", "two"}) {
    const SteadyTime start = steady_clock::now();
    ASSERT_TRUE(command.start(shell(std::string{"echo "} + word), start));
    while (!command.poll(start + milliseconds{5}, output)) {
      ASSERT_TRUE(wait_for(command.wake_fds()));
    }
    EXPECT_EQ(output.out, std::string{word} + "\n");
    EXPECT_EQ(output.took, milliseconds{5});
    EXPECT_FALSE(command.running());
    EXPECT_THAT(command.wake_fds(), IsEmpty());
    EXPECT_FALSE(command.poll(start + minutes{1}, output));
  }
}

// Starts a script that prints the pid of a background process and waits for the line.
int start_with_grandchild(Command& command, const std::string& script, Duration timeout,
                          SteadyTime now) {
  const fakes::TempTree tree;
  const std::string fifo = tree.path("pid");
  if (::mkfifo(fifo.c_str(), 0600) != 0) {
    return -1;
  }
  CommandSpec spec = shell("sleep 100 & echo $! >" + fifo + "; " + script);
  spec.timeout = timeout;
  if (!command.start(spec, now)) {
    return -1;
  }
  const UniqueFd read_end{::open(fifo.c_str(), O_RDONLY | O_CLOEXEC)};
  char line[32] = {};
  return ::read(read_end.get(), line, sizeof line - 1) > 0 ? parse_int<int>(trim(line)).value_or(-1)
                                                           : -1;
}

TEST_F(CommandTest, TheDeadlineKillsTheWholeGroup) {
  Command command;
  const SteadyTime start = steady_clock::now();
  const int grandchild = start_with_grandchild(command, "sleep 100; true", seconds{10}, start);
  ASSERT_GT(grandchild, 0);
  CommandOutput output;
  EXPECT_FALSE(command.poll(start + seconds{10} - milliseconds{1}, output));
  EXPECT_TRUE(command.poll(start + seconds{10}, output));
  EXPECT_TRUE(output.timed_out);
  EXPECT_FALSE(output.too_long);
  EXPECT_EQ(output.signal, SIGKILL);
  EXPECT_TRUE(wait_for_end(grandchild));
}

TEST_F(CommandTest, AGrandchildThatIgnoresSignalsIsKilledTooAndNobodyIsLeft) {
  Command command;
  const SteadyTime start = steady_clock::now();
  // Both ignore them: what is ignored stays ignored in the child (sigaction(2)).
  const fakes::TempTree tree;
  const CommandSpec spec = shell("trap '' TERM INT HUP; sleep 100 & echo $!; : >" +
                                 tree.path("said").string() + "; wait; sleep 100");
  ASSERT_TRUE(command.start(spec, start));
  CommandOutput output;
  while (!tree.exists("said")) {
    ::sched_yield();
  }
  EXPECT_TRUE(command.poll(start + spec.timeout, output));
  const auto grandchild = parse_int<int>(trim(output.out));
  ASSERT_TRUE(grandchild) << output.out;
  EXPECT_TRUE(output.timed_out);
  EXPECT_TRUE(wait_for_end(*grandchild));
  EXPECT_TRUE(no_child_left()) << "no zombie of ours";
}

TEST_F(CommandTest, AChildThatCannotBeEndedBlocksTheNextCommandOnly) {
  Command command;
  CommandSpec spec;
  spec.argv = {"sh", "-c", "echo $$; exec sleep 1000"};
  spec.timeout = minutes{1};
  const auto began = steady_clock::now();
  ASSERT_TRUE(command.start(spec, began));
  CommandOutput output;
  // Not among the children of this thread before the thread that started it has ended.
  const int pid = process_behind(command.wake_fds().front());
  ASSERT_GT(pid, 0);
  fakes::Tracer tracer{pid};
  if (!tracer.traces()) {
    GTEST_SKIP() << "ptrace is not allowed here";
  }
  EXPECT_TRUE(command.poll(began + minutes{2}, output));
  EXPECT_TRUE(output.timed_out);
  EXPECT_FALSE(command.running());
  EXPECT_TRUE(command.wake_fds().empty());

  const auto refused = command.start(shell("true"), steady_clock::now());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTimeout);
  tracer.kill();
  ASSERT_TRUE(wait_for_end(pid));
  EXPECT_TRUE(command.start(shell("true"), steady_clock::now()));
}

TEST_F(CommandTest, WhatTheChildLeavesBehindIsKilledAndNotWaitedFor) {
  Command command;
  const SteadyTime start = steady_clock::now();
  const int grandchild = start_with_grandchild(command, "exit 4", minutes{1}, start);
  ASSERT_GT(grandchild, 0);
  CommandOutput output;
  while (!command.poll(start, output)) {
    ASSERT_TRUE(wait_for(command.wake_fds()));
  }
  EXPECT_EQ(output.exit_code, 4);
  EXPECT_FALSE(output.timed_out);
  EXPECT_TRUE(wait_for_end(grandchild));
}

TEST_F(CommandTest, DestructionKillsTheWholeGroup) {
  int grandchild = -1;
  {
    Command command;
    grandchild = start_with_grandchild(command, "sleep 100; true", minutes{1}, steady_clock::now());
    ASSERT_GT(grandchild, 0);
  }
  EXPECT_TRUE(no_child_left());
  EXPECT_TRUE(wait_for_end(grandchild));
}

// A loop that was late (the machine slept) must not throw a good answer away.
TEST_F(CommandTest, AnEndBeforeALatePollIsNoTimeout) {
  Command command;
  const SteadyTime start = steady_clock::now();
  ASSERT_TRUE(command.start(shell("echo answer"), start));
  ASSERT_TRUE(wait_for({command.wake_fds().front()}));  // the pidfd: it has ended
  CommandOutput output;
  ASSERT_TRUE(command.poll(start + minutes{10}, output));
  EXPECT_FALSE(output.timed_out);
  EXPECT_EQ(output.out, "answer\n");
  EXPECT_EQ(output.signal, 0);
}

TEST_F(CommandTest, OverlongOutputEndsTheCommand) {
  for (const char* script : {"exec yes", "exec yes >&2"}) {
    CommandSpec spec = shell(script);
    spec.max_output_bytes = 100000;
    spec.timeout = minutes{1};
    const auto result = run_command(spec);
    ASSERT_TRUE(result);
    EXPECT_TRUE(result->too_long);
    EXPECT_FALSE(result->timed_out);
    EXPECT_EQ(result->out.size() + result->err.size(), 100000U);
    EXPECT_EQ(result->signal, SIGKILL);
  }
}

TEST_F(CommandTest, ALimitThatIsJustReachedIsFine) {
  CommandSpec spec = shell("printf 0123456789");
  spec.max_output_bytes = 10;
  const auto exact = run_command(spec);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->out, "0123456789");
  EXPECT_FALSE(exact->too_long);
}

// The last words fit into the pipe, so the child has long ended when they are read.
TEST_F(CommandTest, OverlongOutputOfAnEndedChildIsNoticed) {
  Command command;
  CommandSpec spec = shell("printf 0123456789x");
  spec.max_output_bytes = 10;
  const SteadyTime start = steady_clock::now();
  ASSERT_TRUE(command.start(spec, start));
  ASSERT_TRUE(wait_for({command.wake_fds().front()}));
  CommandOutput output;
  ASSERT_TRUE(command.poll(start, output));
  EXPECT_TRUE(output.too_long);
  EXPECT_EQ(output.out, "0123456789");
}

// What a child says is read with its end, unless it takes long.
TEST_F(CommandTest, OutputWakesNobodyForTheFirstTenthOfASecond) {
  const fakes::TempTree tree;
  Command command;
  const SteadyTime start = steady_clock::now();
  ASSERT_TRUE(command.start(
      shell("echo early; : >" + tree.path("said").string() + "; exec sleep 100"), start));
  while (!tree.exists("said")) {
    ::sched_yield();
  }
  ASSERT_EQ(command.wake_fds().size(), 1U);
  EXPECT_GT(process_behind(command.wake_fds().front()), 0) << "the pidfd";
  EXPECT_EQ(command.deadline(), start + milliseconds{100});
  CommandOutput output;
  EXPECT_FALSE(command.poll(start + milliseconds{99}, output));
  EXPECT_EQ(command.wake_fds().size(), 1U);
  EXPECT_FALSE(command.poll(start + milliseconds{100}, output));
  EXPECT_EQ(command.wake_fds().size(), 3U);
  EXPECT_EQ(command.deadline(), start + seconds{10});
  ASSERT_TRUE(command.poll(start + seconds{10}, output));
  EXPECT_EQ(output.out, "early\n") << "read all the same";
}

// Whether the child comes to wait in one of these system calls.
bool waits_in(const Command& command, const std::vector<long>& calls) {
  const int pid = process_behind(command.wake_fds().front());
  const auto deadline = steady_clock::now() + milliseconds{kPatienceMs};
  do {
    std::ifstream state{"/proc/" + std::to_string(pid) + "/syscall"};
    long call = -1;
    if (state >> call && std::find(calls.begin(), calls.end(), call) != calls.end()) {
      return true;
    }
  } while (steady_clock::now() < deadline);
  return false;
}

TEST_F(CommandTest, OneThatWaitsToConnectAgainIsEndedWhereThatIsWanted) {
  const std::vector<std::string> sleep{"sleep", "100"};
  struct Row {
    const char* what;
    std::vector<std::string> argv;
    bool wanted, ends;
    std::vector<std::string> programs = {};
  };
  for (const Row& row : {Row{"wanted", sleep, true, true}, Row{"not wanted", sleep, false, false},
                         Row{"a script", {"sh", "-c", "exec sleep 100"}, true, false},
                         Row{"with a socket",
                             {"sleep", "-c", "exec 3<>/dev/udp/127.0.0.1/9; exec sleep 100"},
                             true,
                             false,
                             {"/bin/bash"}}}) {
    SCOPED_TRACE(row.what);
    Command command;
    const SteadyTime start = steady_clock::now();
    CommandSpec spec;
    spec.argv = row.argv;
    spec.programs = row.programs;
    spec.ends_asleep = row.wanted;
    ASSERT_TRUE(command.start(spec, start));
    ASSERT_TRUE(waits_in(command, {SYS_clock_nanosleep, SYS_nanosleep}));
    CommandOutput output;
    EXPECT_FALSE(command.poll(start + milliseconds{99}, output)) << "not yet";
    EXPECT_EQ(command.poll(start + milliseconds{100}, output), row.ends);
    EXPECT_EQ(output.asleep, row.ends);
    EXPECT_EQ(output.timed_out, row.ends);
  }
}

TEST_F(CommandTest, OneThatWaitsForSomethingElseIsLookedAtAgainAndLivesToItsDeadline) {
  const fakes::TempTree tree;
  ASSERT_EQ(::mkfifo(tree.path("fifo").c_str(), 0600), 0);
  Command command;
  const SteadyTime start = steady_clock::now();
  CommandSpec spec = shell("read line <" + tree.path("fifo").string());
  spec.ends_asleep = true;
  ASSERT_TRUE(command.start(spec, start));
  ASSERT_TRUE(waits_in(command, {SYS_openat}));
  CommandOutput output;
  SteadyTime now = start + milliseconds{100};
  EXPECT_EQ(command.deadline(), now);
  for (; now < start + seconds{10}; now += seconds{1}) {
    EXPECT_FALSE(command.poll(now, output));
    EXPECT_EQ(command.deadline(), std::min(now + seconds{1}, start + seconds{10}));
  }
  EXPECT_TRUE(command.poll(now, output));
  EXPECT_TRUE(output.timed_out);
  EXPECT_FALSE(output.asleep);
}

TEST_F(CommandTest, ALongAnswerEndsThoughNobodyReadsItYet) {
  fakes::TempTree tree;
  Command command;
  const std::string done = tree.root() / "done";
  ASSERT_TRUE(command.start(shell("head -c 800000 /dev/zero; touch " + done), steady_clock::now()));
  const auto deadline = steady_clock::now() + milliseconds{kPatienceMs};
  while (!std::filesystem::exists(done) && steady_clock::now() < deadline) {
    ::poll(nullptr, 0, 10);
  }
  EXPECT_TRUE(std::filesystem::exists(done));
}

TEST_F(CommandTest, MoreOutputThanAPipeHolds) {
  const auto result = run_command(shell("head -c 500000 /dev/zero; head -c 400000 /dev/zero >&2"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->out.size(), 500000U);
  EXPECT_EQ(result->err.size(), 400000U);
  EXPECT_EQ(result->exit_code, 0);
}

TEST_F(CommandTest, AChildThatClosesItsOutputIsStillWaitedFor) {
  const auto result = run_command(shell("exec >&- 2>&-; sleep 0.05; exit 7"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 7);
  EXPECT_THAT(result->out, IsEmpty());
}

}  // namespace
}  // namespace slurmlet
