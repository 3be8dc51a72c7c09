#include "status/service_manager.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

namespace slurmlet::status {
namespace {

using std::chrono::seconds;
using Variables = std::map<std::string, std::string>;

ManagerEnvironment read_with(const Variables& variables) {
  return read_manager_environment(
      [&](const std::string& name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional{found->second};
      },
      42);
}

TEST(ManagerEnvironmentTest, ReadsTheEnvironmentOfAService) {
  const auto environment =
      read_with({{"NOTIFY_SOCKET", "/run/systemd/notify"},
                 {"WATCHDOG_USEC", "60000000"},
                 {"WATCHDOG_PID", "42"},
                 {"CREDENTIALS_DIRECTORY", "/run/credentials/slurmlet.service"}});
  EXPECT_EQ(environment.notify_socket, "/run/systemd/notify");
  EXPECT_EQ(environment.watchdog, seconds{60});
  EXPECT_EQ(environment.credentials_directory, "/run/credentials/slurmlet.service");
}

TEST(ManagerEnvironmentTest, SocketsStartAtThreeIfTheyAreForUs) {
  using Sockets = std::vector<int>;
  EXPECT_EQ(read_with({{"LISTEN_FDS", "2"}, {"LISTEN_PID", "42"}}).sockets, (Sockets{3, 4}));
  EXPECT_EQ(read_with({{"LISTEN_FDS", "2"}, {"LISTEN_PID", "41"}}).sockets, Sockets{});
  EXPECT_EQ(read_with({{"LISTEN_FDS", "2"}}).sockets, Sockets{});
  EXPECT_EQ(read_with({{"LISTEN_PID", "42"}}).sockets, Sockets{});
  for (const char* count : {"", "0", "-1", "two", "99999999999"}) {
    EXPECT_EQ(read_with({{"LISTEN_FDS", count}, {"LISTEN_PID", "42"}}).sockets, Sockets{}) << count;
  }
}

TEST(ManagerEnvironmentTest, IsEmptyOutsideAService) {
  const auto environment = read_with({});
  EXPECT_EQ(environment.notify_socket, "");
  EXPECT_FALSE(environment.watchdog);
  EXPECT_EQ(environment.credentials_directory, "");
}

TEST(ManagerEnvironmentTest, TheWatchdogOfAnotherProcessIsNotOurs) {
  EXPECT_FALSE(read_with({{"WATCHDOG_USEC", "1000000"}, {"WATCHDOG_PID", "41"}}).watchdog);
  EXPECT_EQ(read_with({{"WATCHDOG_USEC", "1000000"}}).watchdog, seconds{1})
      << "without WATCHDOG_PID it is for any process";
}

TEST(ManagerEnvironmentTest, AnInvalidIntervalCountsAsNotSet) {
  for (const char* usec : {"", "0", "-5", "1s", "99999999999999999999"}) {
    EXPECT_FALSE(read_with({{"WATCHDOG_USEC", usec}, {"WATCHDOG_PID", "42"}}).watchdog) << usec;
  }
}

TEST(ManagerEnvironmentTest, ChildrenInheritNoneOfIt) {
  const char* const names[] = {"NOTIFY_SOCKET",         "WATCHDOG_USEC", "WATCHDOG_PID",
                               "CREDENTIALS_DIRECTORY", "LISTEN_FDS",    "LISTEN_PID",
                               "LISTEN_FDNAMES"};
  ::setenv("NOTIFY_SOCKET", "@slurmlet-test", 1);
  ::setenv("WATCHDOG_USEC", "2000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("CREDENTIALS_DIRECTORY", "/credentials", 1);
  ::setenv("LISTEN_FDS", "1", 1);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDNAMES", "slurmlet.socket", 1);
  const int kept = ::dup(3);
  ASSERT_EQ(::dup2(0, 3), 3);  // without FD_CLOEXEC, as from the manager
  const auto environment = take_manager_environment();
  EXPECT_EQ(environment.notify_socket, "@slurmlet-test");
  EXPECT_EQ(environment.watchdog, seconds{2});
  EXPECT_EQ(environment.credentials_directory, "/credentials");
  EXPECT_EQ(environment.sockets, std::vector<int>{3});
  EXPECT_EQ(::fcntl(3, F_GETFD), FD_CLOEXEC);
  if (kept >= 0) {
    ::dup2(kept, 3);
    ::close(kept);
  }
  for (const char* name : names) {
    EXPECT_EQ(std::getenv(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace slurmlet::status
