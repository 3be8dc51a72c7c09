// The reader of a site: what it asks, what it leaves in its directory, and what it must not touch.

#include "slurm/sources/feed_writer.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "fake_runner.h"
#include "feed_fixture.h"

namespace slurmlet::slurm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

constexpr std::int64_t kStart = 1763757000;  // a multiple of 30

class FeedWriterTest : public testing::Test {
 protected:
  FeedWriter make() {
    auto directory = FeedDirectory::open(place_.feed().string());
    EXPECT_TRUE(directory) << directory.error().message;
    FeedWriterSettings settings;
    settings.cluster = "alps";
    settings.reader = "head1";
    settings.slurm_version = "22.05.8";
    return FeedWriter{settings, *std::move(directory), std::make_unique<FakeRunner>(program_),
                      [] { return 1.0; }};
  }

  static CommandOutput printed(const std::string& text) {
    CommandOutput output;
    output.out = text;
    return output;
  }
  static CommandOutput unreachable() {
    CommandOutput output;
    output.exit_code = 1;
    output.err = "slurm_load_node error: Unable to contact slurm controller (connect failure)\n";
    return output;
  }

  // Steps until a question is under way, then ends it so.
  void dump(FeedWriter& writer, CommandOutput output) {
    for (int i = 0; i < 3 && !program_.running; ++i) {
      now_ = std::max(now_, next_);
      next_ = writer.step(at());
    }
    ASSERT_TRUE(program_.running);
    now_ += milliseconds{200};
    program_.end = std::move(output);
    next_ = writer.step(at());
  }

  Now at() const { return {now_, WallTime{seconds{kStart}} + now_.time_since_epoch()}; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator{place_.feed() / "nodes"}) {
      out.push_back(entry.path().filename());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  FeedHeader header() const {
    const auto header = parse_feed_header(FeedPlace::text(place_.header()));
    EXPECT_TRUE(header) << FeedPlace::text(place_.header());
    return header ? *header : FeedHeader{};
  }

  FeedPlace place_;
  FakeProgram program_;
  SteadyTime now_{};
  SteadyTime next_{};
};

TEST_F(FeedWriterTest, AsksOneQuestionForAllNodes) {
  auto writer = make();
  dump(writer, printed(feed_record("n1")));
  EXPECT_THAT(program_.started.front().argv,
              ElementsAre("scontrol", "--local", "-a", "-d", "-o", "show", "node"));
  EXPECT_THAT(program_.started.front().extra_environment, ElementsAre("SLURM_TIME_FORMAT=%s"));
  EXPECT_EQ(program_.started.size(), 1);
}

TEST_F(FeedWriterTest, LeavesOneFileForEachNodeAndAHeader) {
  auto writer = make();
  dump(writer, printed(feed_record("n1") + feed_record("n2", "DOWN")));
  EXPECT_THAT(names(), ElementsAre("n1", "n2"));
  EXPECT_THAT(FeedPlace::text(place_.node("n2")), HasSubstr(" State=DOWN "));
  EXPECT_EQ(FeedPlace::text(place_.header()),
            "{\"format\":1,\"cluster\":\"alps\",\"reader\":\"head1\",\"slurmVersion\":\"22.05.8\","
            "\"intervalSeconds\":30,\"nodes\":2,\"dumpedAt\":1763757000}\n");
}

TEST_F(FeedWriterTest, EverybodyMayReadWhateverTheMaskIs) {
  const auto old = ::umask(0077);
  auto writer = make();
  dump(writer, printed(feed_record("n1")));
  ::umask(old);
  const auto mode = [](const fs::path& path) { return fs::status(path).permissions(); };
  EXPECT_EQ(mode(place_.feed()), fs::perms{0755});
  EXPECT_EQ(mode(place_.feed() / "nodes"), fs::perms{0755});
  EXPECT_EQ(mode(place_.node("n1")), fs::perms{0644});
  EXPECT_EQ(mode(place_.header()), fs::perms{0644});
}

TEST_F(FeedWriterTest, DumpsFallOnMultiplesOfTheIntervalOnTheWallClock) {
  auto writer = make();
  now_ += milliseconds{12345};
  dump(writer, printed(feed_record("n1")));
  EXPECT_EQ(next_ - SteadyTime{}, seconds{30});
  dump(writer, printed(feed_record("n1")));
  EXPECT_EQ(header().dumped_at, WallTime{seconds{kStart + 30}});
  EXPECT_EQ(next_ - SteadyTime{}, seconds{60});
}

TEST_F(FeedWriterTest, AFileThatNeedsNoChangeIsNotTouched) {
  auto writer = make();
  dump(writer, printed(feed_record("n1") + feed_record("n2")));
  struct stat before {};
  ASSERT_EQ(::stat(place_.node("n1").c_str(), &before), 0);
  // Load changes with every ping of slurmctld and is none of the feed's news.
  dump(writer, printed(feed_record("n1", "IDLE", "", "3.50") + feed_record("n2", "DOWN")));
  struct stat after {};
  ASSERT_EQ(::stat(place_.node("n1").c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  EXPECT_EQ(writer.status().changes.written, 1);
  EXPECT_THAT(FeedPlace::text(place_.node("n2")), HasSubstr(" State=DOWN "));
}

TEST_F(FeedWriterTest, AfterARestartUnchangedFilesStayAndSpoiltOnesAreRewritten) {
  {
    auto writer = make();
    dump(writer, printed(feed_record("n1") + feed_record("n2")));
  }
  FeedPlace::write(place_.node("n2"), "");  // as after a crash of the machine
  auto writer = make();
  dump(writer, printed(feed_record("n1") + feed_record("n2")));
  EXPECT_EQ(writer.status().changes.written, 1);
  EXPECT_THAT(FeedPlace::text(place_.node("n2")), HasSubstr("NodeName=n2 "));
}

TEST_F(FeedWriterTest, AFileThatSomebodyRemovedComesBack) {
  auto writer = make();
  dump(writer, printed(feed_record("n1")));
  fs::remove(place_.node("n1"));
  dump(writer, printed(feed_record("n1")));
  EXPECT_THAT(names(), ElementsAre("n1"));
}

TEST_F(FeedWriterTest, FilesOfVanishedNodesGo) {
  auto writer = make();
  dump(writer, printed(feed_record("n1") + feed_record("n2")));
  FeedPlace::write(place_.node("left-by-an-earlier-run"), "x");
  dump(writer, printed(feed_record("n2")));
  EXPECT_THAT(names(), ElementsAre("n2"));
  EXPECT_EQ(writer.status().changes.removed, 2);
  EXPECT_EQ(header().nodes, 1);
}

TEST_F(FeedWriterTest, AReasonOfSeveralLinesStaysWithItsNode) {
  auto writer = make();
  dump(writer, printed(feed_record("n1", "IDLE+DRAIN", " Comment=a\nb=c\n  NodeName=n9") +
                       feed_record("n2")));
  EXPECT_THAT(names(), ElementsAre("n1", "n2"));
  EXPECT_THAT(FeedPlace::text(place_.node("n1")), HasSubstr("a\nb=c\n  NodeName=n9\n"));
}

TEST_F(FeedWriterTest, WhatPretendsToBeASecondRecordStandsBesideTheFirst) {
  auto writer = make();
  dump(writer, printed(feed_record("n1", "DOWN") +
                       feed_record("n2", "IDLE", " Comment=a\n" + feed_record("n1"))));
  const auto text = FeedPlace::text(place_.node("n1"));
  EXPECT_THAT(text, AllOf(HasSubstr(" State=DOWN "), HasSubstr(" State=IDLE ")));
}

TEST_F(FeedWriterTest, NoNameLeadsOutOfTheDirectory) {
  auto writer = make();
  dump(writer, printed(feed_record("n1") + feed_record("../escaped") + feed_record("..") +
                       feed_record("/tmp/feed-absolute") + feed_record(".hidden") +
                       feed_record("-rf") + feed_record("a/b")));
  EXPECT_THAT(names(), ElementsAre("n1"));
  EXPECT_FALSE(fs::exists(place_.feed() / "escaped"));
  EXPECT_FALSE(fs::exists("/tmp/feed-absolute"));
}

TEST_F(FeedWriterTest, APlantedLinkIsReplacedAndItsTargetIsLeftAlone) {
  const auto victim = place_.root / "victim";
  FeedPlace::write(victim, "precious");
  { auto writer = make(); }
  fs::create_symlink(victim, place_.node("n1"));
  fs::create_symlink(victim, place_.feed() / "nodes" / ".new");
  fs::create_symlink(victim, place_.header());
  auto writer = make();
  dump(writer, printed(feed_record("n1")));
  EXPECT_EQ(FeedPlace::text(victim), "precious");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(place_.node("n1"))));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(place_.header())));
}

TEST_F(FeedWriterTest, RefusesADirectoryThatIsALinkOrOpenToEverybody) {
  fs::create_directory(place_.root / "elsewhere");
  fs::create_directory_symlink(place_.root / "elsewhere", place_.feed());
  EXPECT_FALSE(FeedDirectory::open(place_.feed().string()));
  EXPECT_FALSE(FeedDirectory::open(place_.feed().string() + "/"));
  fs::remove(place_.feed());

  fs::create_directory(place_.feed());
  fs::permissions(place_.feed(), fs::perms{0777});
  const auto open = FeedDirectory::open(place_.feed().string());
  ASSERT_FALSE(open);
  EXPECT_THAT(open.error().message, HasSubstr("every user may write"));
  fs::permissions(place_.feed(), fs::perms{0755});

  fs::create_directory_symlink(place_.root / "elsewhere", place_.feed() / "nodes");
  EXPECT_FALSE(FeedDirectory::open(place_.feed().string()));
}

TEST_F(FeedWriterTest, TwoReadersDoNotShareADirectory) {
  auto writer = make();
  const auto second = FeedDirectory::open(place_.feed().string());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
}

TEST_F(FeedWriterTest, AFailureKeepsTheFilesAndTheTimeAndNamesItsCause) {
  auto writer = make();
  dump(writer, printed(feed_record("n1")));
  dump(writer, unreachable());
  EXPECT_THAT(names(), ElementsAre("n1"));
  EXPECT_EQ(header().dumped_at, WallTime{seconds{kStart}});
  EXPECT_EQ(header().nodes, 1);
  EXPECT_THAT(header().failure, HasSubstr("controller unreachable: "));
  EXPECT_THAT(writer.status().failure, HasSubstr("controller unreachable: "));
  dump(writer, printed(feed_record("n1")));
  EXPECT_EQ(header().failure, "");
  EXPECT_EQ(writer.status().failure, "");
}

TEST_F(FeedWriterTest, WhatIsNoWholeListChangesNothing) {
  auto writer = make();
  dump(writer, printed(feed_record("n1") + feed_record("n2")));
  auto hung = CommandOutput{};
  hung.timed_out = true;
  auto flood = CommandOutput{};
  flood.too_long = true;
  const std::string half = feed_record("n1") + feed_record("n2");
  const std::vector<std::pair<CommandOutput, std::string>> answers{
      {printed(half.substr(0, half.size() - 40)), "truncated"},
      {printed(""), "printed nothing"},
      {printed("No nodes in the system\n"), "PrivateData"},
      {printed("<html>\n"), "not a list of nodes"},
      {hung, "time limit"},
      {flood, "more than the records of a cluster"}};
  for (const auto& [answer, why] : answers) {
    dump(writer, answer);
    EXPECT_THAT(names(), ElementsAre("n1", "n2")) << why;
    EXPECT_THAT(header().failure, HasSubstr(why));
    EXPECT_THAT(header().failure, Not(HasSubstr("sinfo")));
    EXPECT_EQ(header().dumped_at, WallTime{seconds{kStart}}) << why;
  }
}

TEST_F(FeedWriterTest, FailuresBackOffUpToTheirBound) {
  auto writer = make();
  std::vector<Duration> waits;
  for (int i = 0; i < 6; ++i) {
    dump(writer, unreachable());
    waits.push_back(next_ - now_);
  }
  EXPECT_EQ(waits.front(), seconds{30});
  EXPECT_GT(waits[2], seconds{60});
  EXPECT_EQ(waits.back(), seconds{300});
}

TEST_F(FeedWriterTest, AHangingQuestionIsEndedAtItsDeadline) {
  auto writer = make();
  next_ = writer.step(at());
  EXPECT_EQ(next_ - now_, seconds{15});
  now_ = next_;
  next_ = writer.step(at());
  EXPECT_EQ(program_.killed, 1);
  EXPECT_THAT(header().failure, HasSubstr("scontrol did not finish within its time limit"));
}

TEST_F(FeedWriterTest, WithoutScontrolTheHeaderSaysSo) {
  program_.start_error = Error{Code::kNotFound, "run scontrol: No such file or directory"};
  auto writer = make();
  next_ = writer.step(at());
  EXPECT_EQ(header().failure, "run scontrol: No such file or directory");
  EXPECT_FALSE(header().dumped_at);
  EXPECT_GT(next_, now_);
}

TEST_F(FeedWriterTest, AFailureAfterARestartKeepsTheTimeOfTheLastDump) {
  {
    auto writer = make();
    dump(writer, printed(feed_record("n1")));
  }
  auto writer = make();
  dump(writer, unreachable());
  EXPECT_EQ(header().dumped_at, WallTime{seconds{kStart}});
  EXPECT_NE(header().failure, "");
}

}  // namespace
}  // namespace slurmlet::slurm
