#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/json_read.h"
#include "kube/object_json.h"
#include "kube/test_time.h"

namespace slurmlet::kube {
namespace {

using nlohmann::json;

TEST(LeaseJsonTest, GoesThereAndBack) {
  Lease lease;
  lease.name = "n1";
  EXPECT_EQ(json::parse(lease_body(lease)), json::parse(R"({
    "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"name": "n1", "namespace": "kube-node-lease"},
    "spec": {"holderIdentity": "", "leaseDurationSeconds": 40}})"));
  lease.resource_version = "12";
  lease.holder_identity = "n1/uuid";
  lease.renew_time = "2026-11-20T14:00:10.000001Z";
  lease.acquire_time = "2026-11-20T14:00:00.000000Z";
  lease.owner_node_name = "n1";
  lease.owner_node_uid = "u";
  const json body = json::parse(lease_body(lease));
  EXPECT_EQ(body["metadata"]["resourceVersion"], "12");
  EXPECT_EQ(body["metadata"]["ownerReferences"],
            json::parse(R"([{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}])"));
  const auto read = lease_from_json(body);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, lease);
}

TEST(LeaseJsonTest, ToleratesOddShapes) {
  const auto lease = lease_from_json(json::parse(R"({"metadata": {"name": "n1",
    "ownerReferences": [3, {"kind": "Pod", "uid": "p"}]},
    "spec": {"leaseDurationSeconds": "40", "renewTime": null}})"));
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->owner_node_uid, "");
  EXPECT_EQ(lease->duration_seconds, 0);
  EXPECT_FALSE(lease_from_json(json::parse(R"({"spec":{}})")));
  EXPECT_FALSE(lease_from_json(json::parse("[]")));
}

// The API server bounds none of the three.
TEST(PodJsonTest, CutsWhatAControllerIsCalled) {
  const std::string megabyte(1 << 20, 'x');
  const auto pod = pod_from_json(
      {{"metadata",
        {{"namespace", "d"},
         {"name", "p"},
         {"uid", "u"},
         {"ownerReferences",
          {{{"kind", megabyte}, {"name", megabyte}, {"uid", megabyte}, {"controller", true}}}}}}});
  ASSERT_TRUE(pod && pod->controller);
  EXPECT_EQ(pod->controller->kind.size(), 63U);
  EXPECT_EQ(pod->controller->name.size(), 253U);
  EXPECT_EQ(pod->controller->uid.size(), 128U);
}

TEST(PodJsonTest, ReadsWhatARejectionNeeds) {
  const auto pod = pod_from_json(json::parse(R"({
    "metadata": {"namespace": "kube-system", "name": "kube-proxy-x", "uid": "u",
      "deletionTimestamp": "2026-11-20T14:00:00Z",
      "ownerReferences": [{"kind": "Other", "name": "o", "uid": "1"},
        {"kind": "DaemonSet", "name": "kube-proxy", "uid": "2", "controller": true}]},
    "spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}],
      "initContainers": [{"name": "first", "image": "i"}],
      "ephemeralContainers": [{"name": "debugger", "image": "k"}]},
    "status": {"phase": "Pending", "containerStatuses": [
      {"name": "a", "state": {"terminated": {"exitCode": 1}}},
      {"name": "b", "state": {"waiting": {}}}]}})"));
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(*pod, (Pod{"kube-system",
                       "kube-proxy-x",
                       "u",
                       "Pending",
                       true,
                       OwnerRef{"DaemonSet", "kube-proxy", "2"},
                       {{"debugger", "k", false}},
                       "",
                       R"([{"name":"a","state":{"terminated":{"exitCode":1}}},)"
                       R"({"name":"b","state":{"waiting":{}}}])"}));
  const auto bare = pod_from_json(json::parse(R"({
    "metadata": {"namespace": "d", "name": "p", "uid": "u", "ownerReferences": [{"kind": "X"}]}})"));
  ASSERT_TRUE(bare);
  EXPECT_EQ(*bare, (Pod{"d", "p", "u", "", false, std::nullopt}));
  for (const char* text : {"3", "{}", R"({"metadata":{"name":"p","uid":"u"}})",
                           R"({"metadata":{"namespace":"d","uid":"u"}})",
                           R"({"metadata":{"namespace":"d","name":"p"}})"}) {
    EXPECT_FALSE(pod_from_json(json::parse(text))) << text;
  }
}

TEST(PodJsonTest, WritesAreGuardedByTheUid) {
  const Pod pod{"d", "p", "u", "Pending", false, std::nullopt};
  EXPECT_EQ(json::parse(pod_failed_body(pod, "SlurmNode", "runs Slurm jobs")), json::parse(R"({
    "metadata": {"uid": "u"},
    "status": {"phase": "Failed", "reason": "SlurmNode", "message": "runs Slurm jobs"}})"));
  EXPECT_EQ(json::parse(pod_delete_body(pod)), json::parse(R"({
    "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
    "preconditions": {"uid": "u"}})"));
}

// What becomes of a container's status when its pod fails.
TEST(PodJsonTest, AFailedPodSaysOfItsContainersWhatIsKnown) {
  const struct {
    const char* what;
    const char* before;
    const char* after;
  } kRows[] = {
      {"has ended",
       R"({"name":"c","ready":false,"state":{"terminated":{"exitCode":3,"reason":"Error"}}})",
       R"({"name":"c","ready":false,"state":{"terminated":{"exitCode":3,"reason":"Error"}}})"},
      {"was running",
       R"({"name":"c","image":"i","imageID":"sha","containerID":"cri://1","ready":true,
           "started":true,"restartCount":2,"lastState":{"terminated":{"exitCode":9}},
           "state":{"running":{"startedAt":"2026-11-20T14:00:00Z"}}})",
       R"({"name":"c","image":"i","imageID":"sha","containerID":"cri://1","ready":false,
           "started":false,"restartCount":2,"lastState":{"terminated":{"exitCode":9}},
           "state":{"terminated":{"exitCode":137,"reason":"R","message":"m",
             "startedAt":"2026-11-20T14:00:00Z","containerID":"cri://1"}}})"},
      {"waits to be started again",
       R"({"name":"c","ready":false,"restartCount":4,"state":{"waiting":{"reason":"CrashLoopBackOff"}},
           "lastState":{"terminated":{"exitCode":7,"finishedAt":"2026-11-20T14:00:00Z"}}})",
       R"({"name":"c","ready":false,"restartCount":4,
           "state":{"terminated":{"exitCode":7,"finishedAt":"2026-11-20T14:00:00Z"}},
           "lastState":{"terminated":{"exitCode":7,"finishedAt":"2026-11-20T14:00:00Z"}}})"},
      {"never ran",
       R"({"name":"c","ready":false,"restartCount":0,"state":{"waiting":{"reason":"ContainerCreating"}}})",
       R"({"name":"c","ready":false,"restartCount":0,"state":{"waiting":{"reason":"R","message":"m"}}})"},
      {"says nothing", R"({"name":"c"})",
       R"({"name":"c","ready":false,"state":{"waiting":{"reason":"R","message":"m"}}})"},
  };
  for (const auto& row : kRows) {
    for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
      const json value = {{"metadata", {{"namespace", "d"}, {"name", "p"}, {"uid", "u"}}},
                          {"status", {{list, json::array({json::parse(row.before)})}}}};
      const auto pod = pod_from_json(value);
      ASSERT_TRUE(pod);
      const json status = json::parse(pod_failed_body(*pod, "R", "m"))["status"];
      EXPECT_EQ(status[list], json::array({json::parse(row.after)})) << row.what << " in " << list;
      EXPECT_EQ(status.size(), 4U) << "phase, reason, message and that list";
    }
  }
}

// A Job's has no exit code, or a rule of podFailurePolicy.onExitCodes could match. Without a
// controller it has ended: kubectl debug node/NAME makes such a pod, and waits for the container.
TEST(PodJsonTest, AContainerThatNeverRan) {
  json value = json::parse(R"({
    "metadata": {"namespace": "d", "name": "p", "uid": "u",
                 "ownerReferences": [{"kind": "Job", "name": "j", "uid": "v", "controller": true}]},
    "spec": {"containers": [{"name": "a", "image": "i"}]}, "status": {"phase": "Pending"}})");
  json ended = json::parse(R"({"name": "a", "image": "i", "imageID": "", "ready": false,
    "restartCount": 0,
    "state": {"terminated": {"exitCode": 128, "reason": "R", "message": "m"}}})");
  const auto status = [](const Pod& pod) {
    return json::parse(pod_failed_body(pod, "R", "m"))["status"];
  };
  EXPECT_EQ(status(*pod_from_json(value)),
            json::parse(R"({"phase": "Failed", "reason": "R", "message": "m"})"));
  value["metadata"].erase("ownerReferences");
  EXPECT_EQ(status(*pod_from_json(value))["containerStatuses"], json::array({ended}));

  Pod debugged{"d", "p", "u", "Pending", false, std::nullopt, {{"ran", "i"}, {"a", "i"}}};
  debugged.ephemeral_container_statuses =
      R"([{"name": "ran", "restartCount": 0, "state": {"running": {}}}])";
  const json ephemeral = status(debugged)["ephemeralContainerStatuses"];
  EXPECT_EQ(ephemeral.at(0)["state"]["terminated"]["exitCode"], 137);
  EXPECT_EQ(ephemeral.at(1), ended);
}

Event node_event() {
  Event event;
  event.namespace_name = "default";
  event.name = "n1.18f";
  event.type = "Warning";
  event.reason = "SlurmNodeDown";
  event.message = "two\nlines";
  event.about.kind = "Node";
  event.about.name = "n1";
  event.about.uid = "n1";
  event.source_component = "slurmlet";
  event.source_host = "n1";
  event.first_seen = kNow;
  event.last_seen = kNow + std::chrono::seconds{5};
  event.count = 2;
  return event;
}

TEST(EventJsonTest, CreateAndUpdate) {
  Event event = node_event();
  EXPECT_EQ(json::parse(event_body(event)), json::parse(R"({
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "n1.18f", "namespace": "default"},
    "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1"},
    "type": "Warning", "reason": "SlurmNodeDown", "message": "two lines",
    "source": {"component": "slurmlet", "host": "n1"},
    "reportingComponent": "slurmlet", "reportingInstance": "n1",
    "firstTimestamp": "2026-11-20T14:00:00Z", "lastTimestamp": "2026-11-20T14:00:05Z",
    "count": 2})"));
  EXPECT_EQ(json::parse(event_patch_body(event)),
            json::parse(R"({"count": 2, "message": "two lines",
                            "lastTimestamp": "2026-11-20T14:00:05Z"})"));
  event.message = std::string(5000, 'x');
  EXPECT_EQ(json::parse(event_body(event))["message"].get<std::string>().size(),
            kMaxEventMessageBytes);
}

TEST(ParseJsonTest, LeavesOutManagedFieldsOnly) {
  const auto value = parse_json(R"({"metadata":{"managedFields":[{"a":1}],"name":"n"},"x":[1]})");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, json::parse(R"({"metadata":{"name":"n"},"x":[1]})"));
}

TEST(ParseJsonTest, RefusesWhatIsNoJson) {
  for (const std::string text : {"", "{", "{} {}", "<html>", "{\"a\":\"\xff\"}"}) {
    const auto value = parse_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().code, Code::kInvalid);
  }
  EXPECT_FALSE(parse_json(std::string(200000, '[')));
}

}  // namespace
}  // namespace slurmlet::kube
