// Dumps that are answered with "unchanged".

#include "operator/site/dumped_nodes.h"

#include <gtest/gtest.h>

#include <deque>

#include "fakes/fake_clock.h"
#include "slurm/sources/site_dump.h"

namespace slurmlet::op {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

std::string json_node(const std::string& name, const std::string& state) {
  return R"({"address":"10.0.0.1","hostname":"h1","name":")" + name +
         R"(","reason":"r","state":[")" + state + "\"]}\n";
}

// Returns scripted answers at once, the last one repeatedly.
struct Script {
  std::deque<Result<slurm::DumpSource::Answer>> answers;
  std::vector<bool> queries;  // or_unchanged of each
  bool is_slow = false;       // no answer yet
};

class ScriptedDump final : public slurm::DumpSource {
 public:
  explicit ScriptedDump(Script& script) : script_(script) {}
  Status start(Now now, bool or_unchanged) override {
    script_.queries.push_back(or_unchanged);
    running_ = true;
    now_ = now.steady;
    return {};
  }
  bool running() const override { return running_; }
  SteadyTime deadline() const override { return now_; }
  std::vector<int> wake_fds() const override { return {}; }
  std::optional<Result<Answer>> poll(Now now) override {
    now_ = now.steady + seconds{1};
    if (!running_ || script_.is_slow) {
      return std::nullopt;
    }
    running_ = false;
    auto answer = script_.answers.front();
    if (script_.answers.size() > 1) {
      script_.answers.pop_front();
    }
    return answer;
  }

 private:
  Script& script_;
  bool running_ = false;
  SteadyTime now_{};
};

class DumpedNodesTest : public ::testing::Test {
 protected:
  DumpedNodesTest() {
    DumpedNodes::Settings settings;
    settings.interval = seconds{15};
    settings.cluster = "c";
    dump_ = std::make_unique<DumpedNodes>(settings, std::make_unique<ScriptedDump>(script_),
                                          [] { return 0.5; });
  }
  static slurm::DumpSource::Answer whole(const std::string& state) {
    return {slurm::DumpRecords{{"n1", json_node("n1", state)}}, seconds{1}};
  }
  static slurm::DumpSource::Answer unchanged() { return {std::nullopt, seconds{1}}; }
  void run(Duration time) {
    clock_.run(time, [this] { return dump_->step(clock_.now(), true, false); });
  }
  // Runs one dump with this answer.
  void one(Result<slurm::DumpSource::Answer> answer) {
    script_.answers = {std::move(answer)};
    const std::size_t before = script_.queries.size();
    for (int i = 0; i < 60 && script_.queries.size() == before; ++i) {
      run(seconds{1});
    }
    ASSERT_GT(script_.queries.size(), before);
    run(seconds{1});
  }

  fakes::FakeClock clock_;
  Script script_;
  std::unique_ptr<DumpedNodes> dump_;
};

TEST_F(DumpedNodesTest, RejectsAnotherClustersAnswer) {
  for (const auto& [cluster, is_ours] :
       std::map<std::string, bool>{{"", true}, {"C", true}, {"elsewhere", false}}) {
    dump_->forget();
    auto answer = whole("IDLE");
    answer.cluster = cluster;
    one(std::move(answer));
    EXPECT_EQ(dump_->nodes().size(), is_ours ? 1U : 0U) << cluster;
    EXPECT_EQ(dump_->report().failure.find("elsewhere") == std::string::npos, is_ours) << cluster;
  }
}

TEST_F(DumpedNodesTest, ReadsRecordsOfSlurmrestd) {
  one(whole("IDLE"));
  const SlurmNode* node = dump_->find("n1");
  ASSERT_NE(node, nullptr);
  EXPECT_EQ(node->address, "10.0.0.1");
  EXPECT_EQ(node->hostname, "h1");
  EXPECT_EQ(node->reason, "r");
  EXPECT_EQ(node->state.raw(), "IDLE");
}

TEST_F(DumpedNodesTest, QueriesForChangesAfterAnUnchangedDump) {
  one(whole("IDLE"));
  one(whole("MIXED"));
  one(whole("MIXED"));
  one(unchanged());
  one(unchanged());
  EXPECT_EQ(script_.queries, (std::vector{false, false, false, true, true}));
  EXPECT_EQ(dump_->counters().dumps, 5U);
  EXPECT_EQ(dump_->counters().unchanged, 2U);
  EXPECT_EQ(dump_->find("n1")->state.raw(), "MIXED");
  EXPECT_EQ(dump_->problem(clock_.now().wall), "") << "it is a good dump of just now";
  one(slurm::DumpSource::Answer{slurm::DumpRecords{{"n2", json_node("n2", "IDLE")}}, seconds{1}});
  one(whole("IDLE"));
  EXPECT_FALSE(script_.queries.back()) << "added and removed nodes are changes";
  one(whole("IDLE"));
  EXPECT_FALSE(script_.queries.back());
}

TEST_F(DumpedNodesTest, DumpsAllAfterAFailureOrForget) {
  one(whole("IDLE"));
  one(whole("IDLE"));
  one(Error{Code::kUnavailable, "away"});
  one(whole("IDLE"));
  EXPECT_EQ(script_.queries, (std::vector{false, false, true, false}));
  one(unchanged());
  dump_->forget();
  one(whole("IDLE"));
  EXPECT_EQ(script_.queries.back(), false);
  EXPECT_NE(dump_->find("n1"), nullptr);
}

TEST_F(DumpedNodesTest, IgnoresUnchangedAfterForget) {
  one(whole("IDLE"));
  one(whole("IDLE"));
  script_.answers = {unchanged()};
  script_.is_slow = true;
  run(seconds{20});
  ASSERT_TRUE(script_.queries.back());
  dump_->forget();
  script_.is_slow = false;
  const std::size_t queries = script_.queries.size();
  (void)dump_->step(clock_.now(), true, false);
  EXPECT_FALSE(dump_->report().dumped_at);
  EXPECT_EQ(dump_->counters().dumps, 2U);
  ASSERT_EQ(script_.queries.size(), queries + 1);
  EXPECT_FALSE(script_.queries.back());
}

TEST_F(DumpedNodesTest, ALargeSiteIsNotQueriedSoonerAfterAFailure) {
  std::map<std::string, std::string> records;
  for (int i = 0; i < 20'000; ++i) {
    const std::string name = "n" + std::to_string(i);
    records[name] = json_node(name, "IDLE");
  }
  dump_ = std::make_unique<DumpedNodes>(
      DumpedNodes::Settings{}, std::make_unique<ScriptedDump>(script_), [] { return 0.5; });
  one(slurm::DumpSource::Answer{records, seconds{1}});
  run(seconds{58});
  script_.answers = {Error{Code::kUnavailable, "away"}};
  const std::size_t queries = script_.queries.size();
  run(minutes{1});
  EXPECT_LE(script_.queries.size() - queries, 2U) << "each 30 s at most";
}

TEST_F(DumpedNodesTest, DumpsAllEveryFiveMinutes) {
  one(whole("IDLE"));
  one(whole("IDLE"));
  script_.answers = {unchanged()};
  script_.queries.clear();
  run(minutes{4});
  EXPECT_EQ(std::count(script_.queries.begin(), script_.queries.end(), false), 0);
  run(minutes{2});
  EXPECT_GE(std::count(script_.queries.begin(), script_.queries.end(), false), 1);
}

TEST_F(DumpedNodesTest, TwoRecordsOfOneNodeAreMisread) {
  one(slurm::DumpSource::Answer{
      slurm::DumpRecords{{"n1", json_node("n1", "IDLE") + json_node("n1", "DOWN")}}, seconds{1}});
  EXPECT_TRUE(dump_->misread().contains("n1"));
  EXPECT_EQ(dump_->find("n1"), nullptr);
}

}  // namespace
}  // namespace slurmlet::op
