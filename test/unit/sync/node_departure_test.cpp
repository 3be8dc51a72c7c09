// NodeSync: a Node that is deleted with its Cluster API Machine stays deleted; any other comes back
// with the cordon it had.

#include "sync/node_sync_fixture.h"

namespace slurmlet::sync {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

class NodeDepartureTest : public NodeSyncFixture {
 protected:
  NodeDepartureTest() {
    options_.deletion_changed = [this](const auto& end) { saved_ = end; };
    watch_.set_position("1");
    make();
    step();
  }
  void change(bool cordoned, const std::string& machine) {
    api_.change("n1", [&](node::ObservedNode& node) {
      node.unschedulable = cordoned;
      if (!machine.empty()) {
        node.annotations["cluster.x-k8s.io/machine"] = machine;
      }
    });
  }
  void change_and_tell(bool cordoned, const std::string& machine) {
    change(cordoned, machine);
    tell(Seen::kModified);
    step_after(seconds{1});
  }
  // Another process of this boot, with what the last one saved.
  void restart() {
    options_.deletion = saved_;
    link_.node_uid.set(std::string{});
    make();
  }
  // Cordoned for its Machine, and then deleted, in sight of the watch.
  void go_with_machine() {
    change_and_tell(true, "m1");
    somebody_deletes_it();
    step();
  }
  // It goes unseen, and a write finds it gone. The Node as it was.
  node::ObservedNode vanish_before_a_write() {
    const auto gone = held();
    api_.remove("n1");
    want(drained_node());
    step_after(seconds{1});
    return gone;
  }
  std::size_t creations() const { return api_.created().size(); }
  void expect_left_deleted() {
    const auto before = creations();
    run(hours{3});
    EXPECT_TRUE(sync_->went_with_machine());
    EXPECT_THAT(sync_->block_reason(), HasSubstr("was deleted with its Machine m1"));
    EXPECT_FALSE(sync_->registered());
    EXPECT_EQ(creations(), before);
    EXPECT_EQ(uid(), "");  // no lease is renewed
  }

  std::optional<node::DeletionRecord> saved_;
};

// The DELETED event has the final state, whether the cordon was seen before or not.
TEST_F(NodeDepartureTest, CordonAndDeletionEndIt) {
  for (const bool is_cordon_seen : {true, false}) {
    change(true, "m1");
    if (is_cordon_seen) {
      tell(Seen::kModified);
      step_after(seconds{1});
    }
    somebody_deletes_it();
    step();
    expect_left_deleted();
    sync_->forget_deletion(clock_.now());
    step();
    ASSERT_TRUE(sync_->registered());
  }
}

TEST_F(NodeDepartureTest, AMachineThatHasLeftSlurmIsNotRegisteredAgain) {
  EXPECT_EQ(sync_->detached(), false);
  api_.change(
      "n1", [](node::ObservedNode& node) { node.annotations["slurmlet.io/detach"] = "Detached"; });
  somebody_deletes_it();
  step();
  run(hours{3});
  EXPECT_TRUE(sync_->went_with_machine());
  EXPECT_THAT(sync_->block_reason(), HasSubstr("its Machine: it was detached from Slurm"));
  restart();
  EXPECT_EQ(sync_->detached(), std::nullopt);
  step();
  EXPECT_EQ(sync_->detached(), true);
}

TEST_F(NodeDepartureTest, AnUncordonCountsAtTheEndToo) {
  change_and_tell(true, "m1");
  ASSERT_TRUE(saved_);
  change_and_tell(false, "m1");
  EXPECT_FALSE(saved_);
  change_and_tell(true, "m1");
  change(false, "m1");
  somebody_deletes_it();
  step();
  run(seconds{5});
  EXPECT_TRUE(sync_->registered());
  EXPECT_FALSE(held().unschedulable);
  EXPECT_FALSE(saved_);
}

TEST_F(NodeDepartureTest, TheWatchIsOpenedAtOnceAfterARestart) {
  go_with_machine();
  restart();
  step();
  ASSERT_TRUE(sync_->went_with_machine());
  step();
  put_ours();
  tell(Seen::kAdded);
  run(seconds{1});
  EXPECT_TRUE(sync_->registered());
}

// Longer for one that was rejected, too.
TEST_F(NodeDepartureTest, AWriteWaitsForTheWatchToTellTheEnd) {
  for (const bool is_broken : {false, true}) {
    change(true, "m1");
    if (is_broken) {
      watch_.fail(Error{Code::kUnavailable, "429"});
    }
    const auto gone = vanish_before_a_write();
    ASSERT_FALSE(sync_->registered());
    const auto before = creations();
    run(is_broken ? milliseconds{20'000} : milliseconds{1500});
    EXPECT_EQ(creations(), before);
    watch_.feed(Seen::kDeleted, {gone});
    step();
    expect_left_deleted();
    watch_.fail(std::nullopt);
    sync_->forget_deletion(clock_.now());
    want(good_node());
    run(minutes{11});
    ASSERT_TRUE(sync_->registered());
  }
}

TEST_F(NodeDepartureTest, OtherNodesComeBackAsTheyWere) {
  const struct {
    bool cordoned;
    const char* machine;
  } table[] = {{false, ""}, {false, "m1"}, {true, ""}};
  for (const auto& row : table) {
    SCOPED_TRACE(row.machine);
    change_and_tell(row.cordoned, row.machine);
    api_.change("n1", [](auto& node) { node.provider_id = "metal3://a/b/c"; });
    somebody_deletes_it();
    step();
    run(seconds{5});
    ASSERT_TRUE(sync_->registered());
    EXPECT_EQ(held().unschedulable, row.cordoned);
    change_and_tell(false, "");
    run(minutes{11});
  }
}

TEST_F(NodeDepartureTest, ACordonIsKeptWhenTheNodeIsDeletedUnseen) {
  change_and_tell(true, "");
  api_.remove("n1");
  restart();
  step();
  EXPECT_TRUE(held().unschedulable);
}

TEST_F(NodeDepartureTest, ARestartInTheSameBootLeavesItDeleted) {
  for (const bool is_seen : {true, false}) {
    SCOPED_TRACE(is_seen);
    change_and_tell(true, "m1");
    ASSERT_TRUE(saved_);
    EXPECT_FALSE(saved_->gone_at);
    api_.remove("n1");
    if (is_seen) {
      watch_.feed(Seen::kReplaced, {});
      step();
      ASSERT_TRUE(saved_->gone_at);
    }
    const auto before = creations();
    restart();
    step();
    EXPECT_EQ(creations(), before);
    ASSERT_TRUE(saved_->gone_at);
    expect_left_deleted();
    sync_->forget_deletion(clock_.now());
    step();
    ASSERT_TRUE(sync_->registered());
  }
}

TEST_F(NodeDepartureTest, AnotherIdentityRegistersAtOnce) {
  go_with_machine();
  ASSERT_TRUE(sync_->went_with_machine());
  sync_->forget_deletion(clock_.now());
  step();
  EXPECT_TRUE(sync_->registered());
  EXPECT_FALSE(sync_->went_with_machine());
  EXPECT_FALSE(held().unschedulable);
  EXPECT_FALSE(saved_);
}

TEST_F(NodeDepartureTest, RecreateAfterIsCountedFromTheDeletionOverRestarts) {
  options_.recreate_after = minutes{10};
  restart();
  step();
  go_with_machine();
  run(minutes{6});
  EXPECT_FALSE(sync_->registered());
  restart();
  run(minutes{3});
  EXPECT_FALSE(sync_->registered());
  EXPECT_TRUE(sync_->went_with_machine());
  run(minutes{2});
  EXPECT_TRUE(sync_->registered());
  EXPECT_TRUE(held().unschedulable);
  EXPECT_EQ(sync_->block_reason(), "");
}

TEST_F(NodeDepartureTest, RecreateAfterZeroIsAtOnce) {
  options_.recreate_after = Duration{0};
  restart();
  step();
  go_with_machine();
  step_after(seconds{1});
  EXPECT_TRUE(sync_->registered());
}

TEST_F(NodeDepartureTest, ANodeThatSomebodyMakesIsAdoptedAndAnotherMachinesChangesNothing) {
  go_with_machine();
  put_foreign();
  tell(Seen::kAdded);
  step();
  EXPECT_THAT(sync_->block_reason(), HasSubstr("another-machine"));
  EXPECT_FALSE(sync_->went_with_machine());
  somebody_deletes_it();
  step();
  expect_left_deleted();
  put_ours();
  tell(Seen::kAdded);
  step();
  EXPECT_TRUE(sync_->registered());
  EXPECT_EQ(sync_->block_reason(), "");
}

TEST_F(NodeDepartureTest, OldNewsOfTheGoneNodeChangesNothing) {
  change(true, "m1");
  const auto gone = held();
  go_with_machine();
  watch_.feed(Seen::kModified, {gone});
  watch_.feed(Seen::kReplaced, {});
  step();
  expect_left_deleted();
}

TEST_F(NodeDepartureTest, TheEndOfAnEarlierNodeIsNotItsEnd) {
  change(true, "m1");
  const auto gone = vanish_before_a_write();
  auto earlier = gone;
  earlier.uid = "earlier";
  earlier.unschedulable = false;
  ASSERT_FALSE(sync_->registered());
  watch_.feed(Seen::kDeleted, {earlier});
  step();
  watch_.feed(Seen::kDeleted, {gone});
  step();
  expect_left_deleted();
}

TEST_F(NodeDepartureTest, AfterAListWithoutTheNodeItIsMadeAtOnce) {
  watch_.fail(Error{Code::kUnavailable, "429"});
  vanish_before_a_write();
  run(seconds{4});
  ASSERT_FALSE(sync_->registered());
  watch_.feed(Seen::kReplaced, {});
  run(seconds{1});
  EXPECT_TRUE(sync_->registered());
}

TEST_F(NodeDepartureTest, AWriteDoesNotWaitForAWatchThatCannotTell) {
  watch_.fail(Error{Code::kUnavailable, "410"});
  watch_.set_position("");
  vanish_before_a_write();
  run(seconds{4});
  EXPECT_TRUE(sync_->registered());
}

// The same Node, with the same uid.
TEST_F(NodeDepartureTest, ASightOfTheNodeEndsIt) {
  change_and_tell(true, "m1");
  const auto node = held();
  somebody_deletes_it();
  step();
  ASSERT_TRUE(sync_->went_with_machine());
  api_.put(node);
  watch_.feed(Seen::kModified, {node});
  step();
  EXPECT_TRUE(sync_->registered());
  EXPECT_FALSE(sync_->went_with_machine());
  EXPECT_FALSE(saved_ && saved_->gone_at);
}

TEST_F(NodeDepartureTest, AWriteThatFindsNoNodeIsChecked) {
  change_and_tell(true, "m1");
  for (const bool can_read : {true, false}) {
    api_.fail_next(Error{Code::kNotFound, "404"});
    api_.fail_calls("get n1", can_read ? std::nullopt : std::optional{Error{Code::kTimeout, "t"}});
    sync_->set_desired(can_read ? drained_node() : good_node(), clock_.now());
    step_after(seconds{1});
    EXPECT_TRUE(sync_->registered());
    EXPECT_TRUE(sync_->write_error());
    EXPECT_FALSE(saved_ && saved_->gone_at);
    run(seconds{10});
    EXPECT_FALSE(sync_->write_error());
  }
  EXPECT_EQ(creations(), 1);
  EXPECT_EQ(held().annotations.at("slurmlet.io/slurm-state"), "IDLE");
}

}  // namespace
}  // namespace slurmlet::sync
