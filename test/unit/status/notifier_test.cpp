#include "status/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "fakes/service_manager.h"
#include "fakes/temp_tree.h"

namespace slurmlet::status {
namespace {

using ::testing::HasSubstr;

Notifier opened(const std::string& address) {
  auto notifier = Notifier::open(address);
  EXPECT_TRUE(notifier) << (notifier ? "" : notifier.error().message);
  return notifier ? std::move(*notifier) : Notifier{};
}

TEST(NotifierTest, TheManagerGetsOneDatagramForEachMessage) {
  const fakes::TempTree tree;
  const std::string path = tree.path("notify").string();
  const fakes::ServiceManager manager{path};
  const Notifier notifier = opened(path);
  EXPECT_TRUE(notifier.is_heard());
  EXPECT_TRUE(notifier.send(kReadyLine + status_line("n1: starts")));
  EXPECT_TRUE(notifier.send(kWatchdogLine));
  EXPECT_TRUE(notifier.send(kStoppingLine));
  EXPECT_EQ(manager.take(), "READY=1\nSTATUS=n1: starts\n");
  EXPECT_EQ(manager.take(), "WATCHDOG=1\n");
  EXPECT_EQ(manager.take(), "STOPPING=1\n");
  EXPECT_EQ(manager.take(), "");
}

TEST(NotifierTest, AbstractSocketsAreReachedToo) {
  const std::string name = "@slurmlet-notifier-test-" + std::to_string(::getpid());
  const fakes::ServiceManager manager{name};
  EXPECT_TRUE(opened(name).send(kReadyLine));
  EXPECT_EQ(manager.take(), "READY=1\n");
}

TEST(NotifierTest, AStatusIsAlwaysOneLine) {
  EXPECT_EQ(status_line("a\nREADY=1\r\tb\x01"), "STATUS=a READY=1  b \n");
}

TEST(NotifierTest, WithoutAManagerNothingHappens) {
  const Notifier none = opened("");
  EXPECT_FALSE(none.is_heard());
  EXPECT_TRUE(none.send(kReadyLine));
  EXPECT_TRUE(Notifier{}.send(kReadyLine));
}

TEST(NotifierTest, AnEmptyMessageIsNotSent) {
  const fakes::TempTree tree;
  const fakes::ServiceManager manager{tree.path("notify").string()};
  EXPECT_TRUE(opened(tree.path("notify").string()).send(""));
  EXPECT_TRUE(opened(tree.path("notify").string()).send(kWatchdogLine));
  EXPECT_EQ(manager.take(), "WATCHDOG=1\n");
}

TEST(NotifierTest, RejectsInvalidAddresses) {
  for (const std::string& address : {std::string{"notify"}, std::string{"@"},
                                     std::string{"vsock:2:9999"}, "/" + std::string(200, 'x')}) {
    const auto notifier = Notifier::open(address);
    ASSERT_FALSE(notifier) << address;
    EXPECT_EQ(notifier.error().code, Code::kInvalid);
    EXPECT_THAT(notifier.error().message, HasSubstr("NOTIFY_SOCKET"));
  }
}

TEST(NotifierTest, AReexecutedManagerGetsTheNextMessage) {
  const fakes::TempTree tree;
  const std::string path = tree.path("notify").string();
  auto before = std::make_unique<fakes::ServiceManager>(path);
  const Notifier notifier = opened(path);
  EXPECT_TRUE(notifier.send(kWatchdogLine));
  before.reset();
  const Status unheard = notifier.send(kWatchdogLine);
  ASSERT_FALSE(unheard);
  EXPECT_EQ(unheard.error().code, Code::kUnavailable);
  EXPECT_THAT(unheard.error().message, HasSubstr(path));
  ASSERT_EQ(::unlink(path.c_str()), 0);
  const fakes::ServiceManager after{path};
  EXPECT_TRUE(notifier.send(kWatchdogLine));
  EXPECT_EQ(after.take(), "WATCHDOG=1\n");
}

TEST(NotifierTest, AManagerThatDoesNotReadBlocksNobody) {
  const fakes::TempTree tree;
  const fakes::ServiceManager manager{tree.path("notify").string()};
  const Notifier notifier = opened(tree.path("notify").string());
  Status sent;
  // Until the kernel's limit of waiting datagrams (net.unix.max_dgram_qlen, and the socket's
  // buffer).
  for (int i = 0; i < 100'000 && sent; ++i) {
    sent = notifier.send(kWatchdogLine);
  }
  EXPECT_FALSE(sent);
}

}  // namespace
}  // namespace slurmlet::status
