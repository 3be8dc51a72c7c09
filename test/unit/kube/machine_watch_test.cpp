// Machines of Cluster API, whose version the server decides.

#include "kube/watch_fixture.h"

namespace slurmlet::kube {
namespace machine_watch_test {

using std::chrono::minutes;
using ::testing::HasSubstr;

struct MachineRig {
  Duration until_wake() {
    events_.clear();
    return watch_->step(clock_.now(), events_) - clock_.now().steady;
  }
  // `resources`: one that each version has which is asked, in turn.
  void serve(const std::string& versions,
             const std::vector<std::string>& resources = {"machines"}) {
    client_.answer(200, R"({"groups":[{"name":"apps","versions":[{"version":"v1"}]},
                             {"name":"cluster.x-k8s.io","versions":[)" +
                            versions + "]}]}");
    for (const std::string& resource : resources) {
      client_.answer(200, R"({"resources":[{"name":"clusters"},{"name":")" + resource + R"("}]})");
    }
  }
  fakes::FakeHttpClient client_;
  fakes::FakeClock clock_;
  std::unique_ptr<Watch<Machine>> watch_ =
      watch_machines(client_, "ns/hpc", {}, [] { return 0.5; });
  std::vector<WatchEvent<Machine>> events_;
};

class MachineWatchTest : public ::testing::Test, protected MachineRig {};

constexpr const char* kMachine = R"({"metadata":{"namespace":"ns","name":"m1","uid":"u",
  "resourceVersion":"7","deletionTimestamp":"2026-11-20T14:00:00Z","annotations":{
  "pre-terminate.delete.hook.machine.cluster.x-k8s.io/slurmlet":"",
  "slurmlet.io/drain-policy":"now"}},
  "spec":{"clusterName":"hpc","providerID":"metal3://a/b/c"},"status":{"initialization":{"infrastructureProvisioned":true},"nodeRef":{"name":"n1"},"addresses":[
  {"type":"Hostname","address":"hpc-1"},{"type":"InternalIP","address":"10.0.0.1"}]}})";

constexpr const char* kOlder = R"({"version":"v1beta1"})";
constexpr const char* kNewer = R"({"version":"v1beta2"})";
constexpr const char* kBoth = R"({"version":"v1beta1"},{"version":"v1beta2"})";

TEST_F(MachineWatchTest, ReadsMachinesOfItsCluster) {
  serve(kBoth);
  client_.answer(200, list_json("100", kMachine));
  until_wake();
  EXPECT_THAT(client_.last().path,
              HasSubstr("/namespaces/ns/machines?labelSelector=cluster.x-k8s.io%2Fcluster-name"
                        "%3Dhpc"));
  ASSERT_EQ(events_.size(), 1U);
  const Machine wanted{"v1beta2",
                       "ns",
                       "m1",
                       "u",
                       "7",
                       "hpc",
                       "n1",
                       "metal3://a/b/c",
                       true,
                       true,
                       "now",
                       {"hpc-1", "10.0.0.1"},
                       WallTime{fakes::FakeClock::kStart}};
  EXPECT_EQ(events_[0].objects.at(0), wanted);
}

TEST_F(MachineWatchTest, ReadsTheNewestVersionThatIsKnownAndHasMachines) {
  const struct {
    std::string versions;
    std::vector<std::string> resources;
    const char* read;
  } rows[] = {
      {kOlder, {"machines"}, "/v1beta1/"},
      {std::string{kBoth} + R"(,{"version":"v9"})", {"machines"}, "/v1beta2/"},
      {kBoth, {"machinesets", "machines"}, "/v1beta1/"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.versions);
    MachineRig rig;
    rig.serve(row.versions, row.resources);
    rig.client_.answer(200, list_json("100"));
    rig.until_wake();
    EXPECT_THAT(rig.client_.last().path, HasSubstr(row.read));
    EXPECT_FALSE(rig.watch_->last_error());
  }
}

// Others of Cluster API's kinds outlive it where nobody is left to remove their finalizers.
TEST_F(MachineWatchTest, WithoutMachinesItLooksAgainAfterMinutes) {
  for (const bool has_group : {true, false}) {
    SCOPED_TRACE(has_group);
    MachineRig rig;
    if (has_group) {
      rig.serve(kBoth, {"machinesets", "machines/status"});
    } else {
      rig.client_.answer(200, R"({"groups":[{"name":"apps","versions":[{"version":"v1"}]}]})");
    }
    const Duration pause = rig.until_wake();
    EXPECT_GE(pause, minutes{2});
    EXPECT_LE(pause, minutes{10});
    EXPECT_EQ(rig.watch_->last_error()->code, Code::kNotFound);
    const std::size_t before = rig.client_.requests.size();
    rig.clock_.advance(pause / 2);
    rig.until_wake();
    EXPECT_EQ(rig.client_.requests.size(), before);
    rig.clock_.advance(pause / 2);
    rig.serve(kNewer);
    rig.client_.answer(200, list_json("100"));
    rig.until_wake();
    EXPECT_FALSE(rig.watch_->last_error());
    ASSERT_EQ(rig.events_.size(), 1U);
  }
}

TEST_F(MachineWatchTest, AVersionThatIsNotToldIsNotTakenForNone) {
  serve(kNewer, {});
  client_.answer(503, "");
  EXPECT_LT(until_wake(), minutes{1});
  EXPECT_EQ(watch_->last_error()->code, Code::kUnavailable);
}

TEST_F(MachineWatchTest, AVersionThatIsServedNoMoreGivesWayToTheNext) {
  serve(kOlder);
  client_.answer(404, "404 page not found");
  const Duration pause = until_wake();
  EXPECT_TRUE(watch_->last_error());
  clock_.advance(pause);
  serve(kNewer);
  client_.answer(200, list_json("100"));
  until_wake();
  EXPECT_THAT(client_.last().path, HasSubstr("/v1beta2/"));
}

}  // namespace machine_watch_test
}  // namespace slurmlet::kube
