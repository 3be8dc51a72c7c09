// The fakes promise to behave like the API server; what they promise is pinned here, and for the
// real server in contract/.

#include "fakes/fake_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/test_time.h"

namespace slurmlet::fakes {
namespace {

using kube::kNow;
using ::testing::ElementsAre;

template <typename T>
Code code(const Result<T>& result) {
  return result ? Code::kInternal : result.error().code;
}

TEST(FakeNodeApiTest, CreatesOnceAndPatchesOnlyTheSameUid) {
  FakeNodeApi api;
  node::DesiredNode desired;
  desired.name = "n1";
  desired.capacity = {{"cpu", "4"}, {"pods", "0"}};
  desired.conditions = {{"Ready", "True", "R", ""}, {"SlurmNodeStateDown", "True", "R", ""}};
  EXPECT_EQ(code(api.get("n1")), Code::kNotFound);
  const auto created = api.create(desired, kNow);
  ASSERT_TRUE(created);
  EXPECT_EQ(created->conditions[0].last_transition_time, "2026-11-20T14:00:00Z");
  EXPECT_EQ(code(api.create(desired, kNow)), Code::kConflict);

  node::NodePatch patch;
  patch.uid = "another";
  EXPECT_EQ(code(api.patch_status("n1", patch)), Code::kInvalid);
  patch.uid = created->uid;
  patch.capacity = {{"cpu", std::nullopt}};
  patch.conditions = {{{"Ready", "False", "X", ""}, "h", "t"}};
  patch.removed_conditions = {"SlurmNodeStateDown"};
  const auto patched = api.patch_status("n1", patch);
  ASSERT_TRUE(patched);
  EXPECT_NE(patched->resource_version, created->resource_version);
  EXPECT_EQ(patched->capacity, (std::map<std::string, std::string>{{"pods", "0"}}));
  EXPECT_THAT(patched->conditions,
              ElementsAre(node::ObservedCondition{{"Ready", "False", "X", ""}, "t"}));
  EXPECT_THAT(api.calls(), ElementsAre("get n1", "create n1", "create n1", "patch_status n1",
                                       "patch_status n1"));
}

TEST(FakeNodeApiTest, ProviderIdIsWrittenOnce) {
  FakeNodeApi api;
  node::ObservedNode node;
  node.name = "n1";
  node.uid = "u";
  api.put(node);
  EXPECT_TRUE(api.set_provider_id("n1", "u", "a"));
  EXPECT_TRUE(api.set_provider_id("n1", "u", "a"));
  EXPECT_EQ(code(api.set_provider_id("n1", "u", "b")), Code::kInvalid);
  EXPECT_EQ(code(api.set_provider_id("n1", "v", "a")), Code::kInvalid);
  EXPECT_EQ(code(api.set_provider_id("n2", "u", "a")), Code::kNotFound);
}

TEST(FakeLeaseApiTest, RefusesStaleVersions) {
  FakeLeaseApi api;
  kube::Lease lease;
  lease.name = "n1";
  EXPECT_TRUE(api.update(lease)) << "a PUT creates";
  api.remove("n1");
  const auto first = api.create(lease);
  ASSERT_TRUE(first);
  EXPECT_EQ(code(api.create(lease)), Code::kConflict);
  EXPECT_EQ(code(api.update(lease)), Code::kInvalid) << "no resourceVersion";
  EXPECT_TRUE(api.update(*first));
  EXPECT_EQ(code(api.update(*first)), Code::kConflict);
  api.remove("n1");
  EXPECT_TRUE(api.update(*first)) << "a PUT creates what was deleted";
}

TEST(FakePodApiTest, ActsOnTheVeryPodOnly) {
  FakePodApi api;
  kube::Pod pod;
  pod.namespace_name = "d";
  pod.name = "p";
  pod.uid = "u";
  EXPECT_EQ(code(api.remove_now(pod)), Code::kNotFound);
  api.put(pod);
  kube::Pod other = pod;
  other.uid = "v";
  EXPECT_EQ(code(api.set_failed(other, "R", "m")), Code::kInvalid);
  EXPECT_EQ(code(api.remove_now(other)), Code::kConflict);
  EXPECT_TRUE(api.set_failed(pod, "R", "m"));
  EXPECT_EQ(api.find("d", "p")->phase, "Failed");
  EXPECT_TRUE(api.remove_now(pod));
  EXPECT_FALSE(api.find("d", "p"));
}

TEST(FakeEventApiTest, UpdatesWhatExists) {
  FakeEventApi api;
  kube::Event event;
  event.name = "e";
  EXPECT_EQ(code(api.update(event)), Code::kNotFound);
  EXPECT_TRUE(api.create(event));
  EXPECT_EQ(code(api.create(event)), Code::kConflict);
  event.count = 5;
  EXPECT_TRUE(api.update(event));
  EXPECT_EQ(api.events().at(0).count, 5);
  api.expire_all();
  EXPECT_EQ(code(api.update(event)), Code::kNotFound);
}

TEST(ScriptedTest, FailsAsToldInOrder) {
  FakeLeaseApi api;
  kube::Lease lease;
  lease.name = "n1";
  api.put(lease);
  api.pass_next();
  api.fail_next({Code::kTimeout, "t"}, 2);
  EXPECT_TRUE(api.get("n1"));
  EXPECT_EQ(code(api.get("n1")), Code::kTimeout);
  EXPECT_EQ(code(api.get("n1")), Code::kTimeout);
  EXPECT_TRUE(api.get("n1"));
  api.fail_always(Error{Code::kUnavailable, "u"});
  EXPECT_EQ(code(api.get("n1")), Code::kUnavailable);
  api.fail_always(std::nullopt);
  EXPECT_TRUE(api.get("n1"));
  EXPECT_EQ(api.count("get n1"), 6);
}

TEST(FakeWatchTest, TellsEachEventOnce) {
  FakeWatch<kube::Pod> watch;
  watch.feed(kube::WatchEvent<kube::Pod>::Type::kReplaced, {});
  std::vector<kube::WatchEvent<kube::Pod>> events;
  EXPECT_EQ(watch.step({}, events), kNever);
  watch.step({}, events);
  EXPECT_EQ(events.size(), 1U);
}

}  // namespace
}  // namespace slurmlet::fakes
