// The daemon's side of the feed: whom it believes, how long, and how it reads.

#include "slurm/sources/feed_source.h"

#include <gmock/gmock.h>

#include "fake_runner.h"
#include "feed_fixture.h"
#include "slurm/sources/controller_poll.h"
#include "slurm/sources/local_directory.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

namespace fs = std::filesystem;

const WallTime kDumped{seconds{1763757000}};  // 2025-11-21T20:30:00Z

FeedHeader good_header() {
  FeedHeader header;
  header.cluster = "alps";
  header.reader = "head1";
  header.interval = seconds{30};
  header.dumped_at = kDumped;
  header.nodes = 2;
  return header;
}

const FeedSettings kSettings{.directory = "/srv/feed", .cluster = "alps"};

QueryResult read(const FeedHeader& header, Duration age,
                 const std::optional<std::string>& record = feed_record("n1"),
                 const FeedSettings& settings = kSettings) {
  return read_feed(settings, to_text(header), record, "n1", kDumped + age);
}

std::string unavailable_detail(const QueryResult& result) {
  EXPECT_FALSE(result.record);
  EXPECT_TRUE(result.failure && result.failure->cause == SlurmFailure::kFeedUnavailable);
  EXPECT_TRUE(result.next_in);
  return result.failure ? result.failure->detail : "";
}

TEST(ReadFeed, TellsTheRecordAndWhenItWasSo) {
  const auto result = read(good_header(), seconds{7});
  ASSERT_TRUE(result.record) << result.failure->detail;
  EXPECT_EQ(result.record->name, "n1");
  EXPECT_EQ(result.record->state.raw(), "IDLE");
  EXPECT_EQ(result.record->cpus, 4);
  EXPECT_EQ(result.record->allocated_cpus, 0);
  EXPECT_EQ(result.record->kind, node::AnswerKind::kFullDump);
  EXPECT_THAT(result.record->partitions, ElementsAre("normal", "debug"));
  EXPECT_EQ(result.record->cluster, "alps");
  EXPECT_EQ(result.as_of, kDumped);
}

TEST(ReadFeed, IsReadAgainRightAfterTheNextDump) {
  for (const auto age : {seconds{0}, seconds{7}, seconds{29}}) {
    const auto next = read(good_header(), age).next_in;
    ASSERT_TRUE(next);
    EXPECT_GE(*next, seconds{30} - age);
    EXPECT_LE(*next, seconds{31} - age);
  }
}

TEST(ReadFeed, ALateDumpIsLookedForSoonAndThenEverMoreRarely) {
  EXPECT_LE(*read(good_header(), seconds{31}).next_in, seconds{2});
  EXPECT_GE(*read(good_header(), seconds{50}).next_in, seconds{15});
  EXPECT_LE(*read(good_header(), seconds{140}).next_in, seconds{16});
}

TEST(ReadFeed, NodesDoNotReadInTheSameMoment) {
  std::set<Duration> moments;
  for (int i = 0; i < 20; ++i) {
    const std::string name = "n" + std::to_string(i);
    moments.insert(
        *read_feed(kSettings, to_text(good_header()), feed_record(name), name, kDumped).next_in);
  }
  EXPECT_GE(moments.size(), 19);
}

TEST(ReadFeed, FiveIntervalsAreTooOldAndTheWordsStandStill) {
  EXPECT_TRUE(read(good_header(), seconds{150}).record);
  const auto old = unavailable_detail(read(good_header(), seconds{151}));
  EXPECT_EQ(old,
            "the feed in /srv/feed dates from 2025-11-21T20:30:00Z; slurmlet feed on head1 has "
            "stopped writing");
  EXPECT_EQ(unavailable_detail(read(good_header(), minutes{500})), old);
}

TEST(ReadFeed, AnOldFeedSaysWhatItsReaderSays) {
  auto header = good_header();
  header.failure = "controller unreachable: connect failure";
  EXPECT_TRUE(read(header, seconds{100}).record);
  EXPECT_EQ(unavailable_detail(read(header, seconds{151})),
            "the feed in /srv/feed dates from 2025-11-21T20:30:00Z; its publisher on head1 "
            "reports: controller unreachable: connect failure");
}

TEST(ReadFeed, AFeedWithoutAnAnswerSaysWhy) {
  auto header = good_header();
  header.dumped_at.reset();
  header.failure = "munge unavailable: x";
  EXPECT_THAT(
      unavailable_detail(read(header, seconds{0})),
      HasSubstr("contains no answer from slurmctld yet; its publisher on head1 reports: munge"));
}

TEST(ReadFeed, ATimeInTheFutureDoesNotStayFreshForEver) {
  EXPECT_TRUE(read(good_header(), -seconds{30}).record);
  EXPECT_THAT(unavailable_detail(read(good_header(), -minutes{2})), HasSubstr("set the clocks"));
}

TEST(ReadFeed, ANodeThatIsMissingIsNotInSlurm) {
  const auto result = read(good_header(), seconds{7}, std::nullopt);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->cause, SlurmFailure::kNotInSlurm);
  EXPECT_EQ(result.failure->detail, "the feed in /srv/feed has no such node");
}

TEST(ReadFeed, ANodeThatIsMissingInAnOldFeedIsUnknown) {
  unavailable_detail(read(good_header(), seconds{151}, std::nullopt));
}

TEST(ReadFeed, AnotherClustersFeedIsRefused) {
  FeedSettings other = kSettings;
  other.cluster = "jura";
  EXPECT_EQ(unavailable_detail(read(good_header(), seconds{7}, feed_record("n1"), other)),
            "the feed in /srv/feed is for cluster alps, but this node belongs to jura");
  other.cluster = "";
  EXPECT_TRUE(read(good_header(), seconds{7}, feed_record("n1"), other).record);
}

TEST(ReadFeed, HeadersThatAreNoneAreRefused) {
  const std::string good = to_text(good_header());
  ASSERT_TRUE(parse_feed_header(good));
  for (const std::string& text : std::vector<std::string>{
           "", "\n", good.substr(0, good.size() / 2), "[]", "1", "{}", "<html>",
           "{\"format\":2,\"intervalSeconds\":30}", "{\"format\":\"1\"}",
           "{\"format\":1,\"intervalSeconds\":0}", "{\"format\":1,\"intervalSeconds\":1e9}",
           "{\"format\":1,\"intervalSeconds\":99999999}"}) {
    const auto result = read_feed(kSettings, text, feed_record("n1"), "n1", kDumped);
    EXPECT_THAT(unavailable_detail(result), HasSubstr("its header")) << text;
  }
}

TEST(ReadFeed, RecordsThatAreNotThisNodesAreGarbage) {
  const std::string good = feed_record("n1");
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "cut off"},
           {good.substr(0, good.size() / 2), "cut off"},
           {"nonsense\n", "not a node record"},
           {feed_record("n2"), "another node"},
           {good + feed_record("n1", "DOWN"), "more than one record"}}) {
    const auto result = read(good_header(), seconds{7}, text);
    ASSERT_TRUE(result.failure) << text;
    EXPECT_EQ(result.failure->cause, SlurmFailure::kGarbage);
    EXPECT_THAT(result.failure->detail, HasSubstr(why));
  }
}

// Reading in place, from a real directory; the table of mounts says it is local.
class FeedSourceTest : public testing::Test {
 protected:
  FeedSourceTest() { mounted_as("ext4"); }

  void mounted_as(const std::string& type) {
    FeedPlace::write(place_.root / "mountinfo", "22 1 8:1 / / rw - " + type + " /dev/sda1 rw\n");
  }
  void publish() {
    FeedPlace::write(place_.node("n1"), feed_record("n1"));
    FeedPlace::write(place_.header(), to_text(good_header()));
  }
  FeedSettings settings() const {
    FeedSettings out = kSettings;
    out.directory = place_.feed().string();
    out.mountinfo = (place_.root / "mountinfo").string();
    return out;
  }
  FeedSource make() { return FeedSource{settings(), std::make_unique<FakeRunner>(program_)}; }
  QueryResult ask(FeedSource& source, const std::string& node = "n1") const {
    const Now now{SteadyTime{seconds{7}}, kDumped + seconds{7}};
    if (auto failure = source.ask(node, Query::kOneNode, now)) {
      return {std::nullopt, failure, std::nullopt};
    }
    EXPECT_TRUE(source.busy());
    EXPECT_LE(source.wake_at(), now.steady);
    auto result = source.poll(now);
    EXPECT_FALSE(source.busy());
    return result.value_or(QueryResult{});
  }

  FeedPlace place_;
  FakeProgram program_;
};

TEST_F(FeedSourceTest, ReadsALocalFileSystemInPlace) {
  publish();
  auto source = make();
  const auto result = ask(source);
  ASSERT_TRUE(result.record) << result.failure->detail;
  EXPECT_EQ(result.record->state.raw(), "IDLE");
  EXPECT_TRUE(program_.started.empty());
  EXPECT_EQ(source.counters().reads, 1);
  EXPECT_EQ(source.counters().commands, 0);
  EXPECT_EQ(source.name(), "feed " + place_.feed().string());
}

TEST_F(FeedSourceTest, AMissingFeedOrNodeIsToldApart) {
  auto source = make();
  EXPECT_THAT(unavailable_detail(ask(source)), HasSubstr("cannot be read: "));
  publish();
  EXPECT_EQ(ask(source, "n7").failure->cause, SlurmFailure::kNotInSlurm);
}

TEST_F(FeedSourceTest, LinksAndOddFilesAreNotRead) {
  publish();
  const auto secret = place_.root / "secret";
  FeedPlace::write(secret, feed_record("n1"));
  fs::remove(place_.node("n1"));
  fs::create_symlink(secret, place_.node("n1"));
  auto source = make();
  EXPECT_THAT(unavailable_detail(ask(source)), HasSubstr("symbolic link"));
  fs::remove(place_.node("n1"));
  ASSERT_EQ(::mkfifo(place_.node("n1").c_str(), 0644), 0);
  EXPECT_THAT(unavailable_detail(ask(source)), HasSubstr("not a file"));
  fs::remove(place_.node("n1"));
  FeedPlace::write(place_.node("n1"), std::string(kMaxFeedFileBytes + 1, 'x'));
  EXPECT_THAT(unavailable_detail(ask(source)), HasSubstr("longer than"));
}

TEST_F(FeedSourceTest, NamesThatLeadElsewhereAreRefused) {
  publish();
  auto source = make();
  for (const char* name : {"..", ".", "../feed.json", "-n", "", "a/b"}) {
    const auto result = ask(source, name);
    ASSERT_TRUE(result.failure) << name;
    EXPECT_EQ(result.failure->cause, SlurmFailure::kBadConfiguration) << name;
  }
}

// Anywhere else a program reads, so that a hanging file server hangs only that.
TEST_F(FeedSourceTest, ANetworkFileSystemIsReadByAProgramWithADeadline) {
  publish();
  mounted_as("nfs4");
  auto source = make();
  Now now{SteadyTime{}, kDumped + seconds{7}};
  ASSERT_FALSE(source.ask("n1", Query::kOneNode, now));
  EXPECT_THAT(program_.started.front().argv,
              ElementsAre("cat", "--", place_.header().string(), place_.node("n1").string()));
  EXPECT_FALSE(source.poll(now));
  CommandOutput output;
  output.out = to_text(good_header()) + feed_record("n1");
  program_.end = output;
  const auto result = source.poll(now);
  ASSERT_TRUE(result && result->record);
  EXPECT_EQ(result->record->name, "n1");
  EXPECT_EQ(source.counters().commands, 1);

  ASSERT_FALSE(source.ask("n1", Query::kOneNode, now));
  EXPECT_EQ(source.wake_at(), now.steady + seconds{5});
  now.steady += seconds{5};
  const auto hung = source.poll(now);
  ASSERT_TRUE(hung);
  EXPECT_THAT(unavailable_detail(*hung), HasSubstr("file system does not answer"));
  EXPECT_EQ(program_.killed, 1);
}

TEST_F(FeedSourceTest, WhatTheProgramSaysOfMissingFilesIsUnderstood) {
  mounted_as("nfs4");
  auto source = make();
  const Now now{SteadyTime{}, kDumped + seconds{7}};
  const auto ended = [&](const std::string& out, const std::string& err) {
    EXPECT_FALSE(source.ask("n1", Query::kOneNode, now));
    CommandOutput output;
    output.exit_code = err.empty() ? 0 : 1;
    output.out = out;
    output.err = err;
    program_.end = output;
    return *source.poll(now);
  };
  const std::string none = ": No such file or directory\n";
  const auto missing = ended(to_text(good_header()), "cat: " + place_.node("n1").string() + none);
  EXPECT_EQ(missing.failure->cause, SlurmFailure::kNotInSlurm);
  EXPECT_THAT(
      unavailable_detail(ended(feed_record("n1"), "cat: " + place_.header().string() + none)),
      HasSubstr("cannot be read"));
  EXPECT_THAT(
      unavailable_detail(ended(to_text(good_header()),
                               "cat: " + place_.node("n1").string() + ": Stale file handle\n")),
      HasSubstr("Stale file handle"));
  EXPECT_THAT(unavailable_detail(ended("", "")), HasSubstr("cut off"));
}

// What the poll makes of a source that costs nothing.
TEST_F(FeedSourceTest, IsAskedAtEachDumpWhateverTheBudget) {
  publish();
  PollSettings poll_settings;
  poll_settings.interval = minutes{10};
  poll_settings.questions_per_hour = 2;
  ControllerPoll poll{poll_settings, "n1", std::make_unique<FeedSource>(make()),
                      [] { return 0.5; }};
  auto header = good_header();
  const SteadyTime begin{};
  SteadyTime now = begin;
  while (now - begin < minutes{60}) {
    const WallTime wall = kDumped + (now - begin);
    header.dumped_at = kDumped + (now - begin) / seconds{30} * seconds{30};
    FeedPlace::write(place_.header(), to_text(header));
    const SteadyTime next = poll.step({now, wall});
    now = std::max(next, now + milliseconds{1});
  }
  const auto counters = poll.counters();
  EXPECT_GE(counters.source.reads, 119);
  EXPECT_LE(counters.source.reads, 122);
  EXPECT_EQ(counters.questions_left, 2);
  EXPECT_EQ(counters.failures, 0);
}

TEST_F(FeedSourceTest, AFeedThatComesBackIsSeenWithoutALongBackOff) {
  PollSettings poll_settings;
  ControllerPoll poll{poll_settings, "n1", std::make_unique<FeedSource>(make()),
                      [] { return 1.0; }};
  SteadyTime now{};
  const auto run_until = [&](SteadyTime end) {
    while (now < end) {
      now = std::max(poll.step({now, kDumped + seconds{7}}), now + milliseconds{1});
    }
  };
  run_until(SteadyTime{minutes{30}});
  EXPECT_EQ(poll.answer({now, kDumped}).failure, SlurmFailure::kFeedUnavailable);
  publish();
  run_until(now + seconds{11});
  EXPECT_TRUE(poll.answer({now, kDumped}).record);
}

TEST(LocalDirectory, TheLongestMountPointDecides) {
  const std::string mounts =
      "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "30 22 0:40 / /srv rw - nfs4 server:/srv rw\n"
      "31 30 0:41 / /srv/with\\040space rw master:2 - lustre mgs:/x rw\n"
      "32 22 0:42 / /run rw - tmpfs tmpfs rw\n"
      "33 32 0:43 / /run/x rw - xfs /dev/sdb rw\n"
      "34 33 0:44 / /run/x rw - autofs auto rw\n"
      "garbage\n";
  for (const auto& [path, type] :
       std::vector<std::pair<std::string, std::string>>{{"/", "ext4"},
                                                        {"/var/lib/feed", "ext4"},
                                                        {"/srv", "nfs4"},
                                                        {"/srv/feed", "nfs4"},
                                                        {"/srvfeed", "ext4"},
                                                        {"/srv/with space/feed", "lustre"},
                                                        {"/run/feed", "tmpfs"},
                                                        {"/run/x/feed", "autofs"}}) {
    EXPECT_EQ(file_system_of(mounts, path), type) << path;
  }
  EXPECT_EQ(file_system_of("", "/srv"), "");
  for (const char* type :
       {"nfs", "nfs4", "lustre", "gpfs", "fuse.sshfs", "autofs", "overlay", ""}) {
    EXPECT_FALSE(is_local_file_system(type)) << type;
  }
}

TEST(LocalDirectory, APlaceIsTheSameWhereverItIsMounted) {
  const std::string host = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
  // A container with the host's /srv/c1 as root, and one directory of the host as it is.
  const std::string container =
      "90 80 8:1 /srv/c1 / rw - ext4 /dev/sda1 rw\n"
      "91 90 8:1 /var/spool /var/spool rw - ext4 /dev/sda1 rw\n";
  EXPECT_EQ(place_on_device(host, "/var/spool/slurmd"), "8:1 /var/spool/slurmd");
  EXPECT_EQ(place_on_device(container, "/var/spool/slurmd"), "8:1 /var/spool/slurmd");
  EXPECT_EQ(place_on_device(container, "/var/spooled"), "8:1 /srv/c1/var/spooled");
  EXPECT_EQ(place_on_device("", "/var"), "");

  const FeedPlace place;
  const std::string proc = place.root.string();
  EXPECT_TRUE(is_seen_alike(proc, 7, "/var/spooled")) << "/proc does not tell";
  fs::create_directories(place.root / "self");
  fs::create_directories(place.root / "7");
  FeedPlace::write(place.root / "self" / "mountinfo", host);
  FeedPlace::write(place.root / "7" / "mountinfo", container);
  EXPECT_TRUE(is_seen_alike(proc, 7, "/var/spool/slurmd"));
  EXPECT_FALSE(is_seen_alike(proc, 7, "/var/spooled"));
}

TEST(LocalDirectory, ALinkOnTheWayIsNotFollowed) {
  const FeedPlace place;
  FeedPlace::write(place.root / "mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  const auto mountinfo = (place.root / "mountinfo").string();
  fs::create_directories(place.root / "real" / "feed");
  fs::create_directory_symlink(place.root / "real", place.root / "link");
  EXPECT_TRUE(open_local_directory(mountinfo, (place.root / "real/feed").string()));
  const auto linked = open_local_directory(mountinfo, (place.root / "link/feed").string());
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().code, Code::kUnavailable);
  const auto missing = open_local_directory(mountinfo, (place.root / "none").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace slurmlet::slurm
