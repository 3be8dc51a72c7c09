#include "podapi/kubelet_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "podapi/gate_fixture.h"

namespace slurmlet::podapi {
namespace kubelet_routes_test {

using nlohmann::json;

KubeletSnapshot snapshot() {
  KubeletSnapshot all;
  all.common.node_name = "n1";
  all.common.checks = {{"lease", false, "not renewed"}, {"loop", true, ""}};
  all.common.metrics = {{"slurmlet_slurmd_up", "", MetricType::kGauge, {{{}, 1}}}};
  all.slurm_cluster = "alps";
  all.config_json = R"({"port":10250})";
  all.usage = node::Usage{};
  return all;
}

Response get(const std::string& path) { return handle_kubelet(request("GET", path), snapshot()); }

TEST(KubeletRoutes, ListsOfPodsAreEmptyAndValid) {
  for (const char* path : {"/pods", "/pods/", "/runningpods", "/runningpods/", "//pods"}) {
    const auto response = get(path);
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_EQ(json_of(response), json::parse(R"({"kind":"PodList","apiVersion":"v1","metadata":{},
                                                 "items":[]})"));
  }
}

TEST(KubeletRoutes, Health) {
  EXPECT_EQ(get("/healthz").body, "ok");
  EXPECT_EQ(get("/readyz").status, 503);
  for (const char* name : {"ping", "log", "syncloop", "loop"}) {
    EXPECT_EQ(get(std::string{"/healthz/"} + name).body, "ok") << name;
  }
  EXPECT_EQ(get("/healthz/lease").status, 503);
  EXPECT_EQ(get("/healthz/other").status, 404);
  EXPECT_EQ(get("/healthz/ping/x").status, 404);
  EXPECT_EQ(get("/readyz/lease").status, 404);
}

TEST(KubeletRoutes, MetricsAndConfiguration) {
  EXPECT_EQ(get("/configz").body, R"({"port":10250})");
  EXPECT_EQ(get("/configz").content_type, "application/json");
  EXPECT_EQ(get("/metrics").body, "# TYPE slurmlet_slurmd_up gauge\nslurmlet_slurmd_up 1\n");
  EXPECT_EQ(get("/metrics").content_type, kMetricsContentType);
  for (const char* path : {"/metrics/cadvisor", "/metrics/probes"}) {
    EXPECT_EQ(get(path).status, 200);
    EXPECT_EQ(get(path).body, "");
    EXPECT_EQ(get(path).content_type, kMetricsContentType);
  }
  EXPECT_EQ(get("/metrics/resource").content_type, kMetricsContentType);
  auto without = snapshot();
  without.config_json.clear();
  EXPECT_EQ(handle_kubelet(request("GET", "/configz"), without).body, "{}");
}

TEST(KubeletRoutes, LogsAreRejectedInPlainText) {
  const auto response = get("/containerLogs/ns/pod/main");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(
      response.body,
      "node n1 belongs to Slurm cluster \"alps\" and runs no pods: there are no containers to "
      "read logs from. Use Slurm's tools (srun, sattach, sbatch output files) instead.");
}

TEST(KubeletRoutes, StreamsAreRejectedWithAStatus) {
  struct Row {
    std::string method, path, what;
  };
  for (const Row& row : std::vector<Row>{{"GET", "/exec/ns/pod/c", "to run commands in"},
                                         {"POST", "/exec/ns/pod/uid/c", "to run commands in"},
                                         {"POST", "/run/ns/pod/c", "to run commands in"},
                                         {"POST", "/run/ns/pod/uid/c", "to run commands in"},
                                         {"GET", "/attach/ns/pod/c", "to attach to"},
                                         {"POST", "/attach/ns/pod/uid/c", "to attach to"},
                                         {"GET", "/portForward/ns/pod", "to forward ports to"},
                                         {"POST", "/portForward/ns/pod/uid", "to forward ports to"},
                                         {"POST", "/checkpoint/ns/pod/c", "to checkpoint"}}) {
    const auto response = handle_kubelet(request(row.method, row.path), snapshot());
    EXPECT_EQ(response.status, 400) << row.path;
    EXPECT_EQ(response.content_type, "application/json");
    EXPECT_EQ(json_of(response),
              (json{{"kind", "Status"},
                    {"apiVersion", "v1"},
                    {"metadata", json::object()},
                    {"status", "Failure"},
                    {"reason", "BadRequest"},
                    {"code", 400},
                    {"message",
                     "node n1 belongs to Slurm cluster \"alps\" and runs no pods: there "
                     "are no containers " +
                         row.what +
                         ". Use Slurm's tools (srun, sattach, sbatch output files) "
                         "instead."}}))
        << row.path;
  }
}

TEST(KubeletRoutes, TheMessageIsOneLineWithAndWithoutACluster) {
  auto all = snapshot();
  all.slurm_cluster.clear();
  EXPECT_EQ(handle_kubelet(request("GET", "/containerLogs/a/b/c"), all).body,
            "node n1 belongs to a Slurm cluster and runs no pods: there are no containers to read "
            "logs from. Use Slurm's tools (srun, sattach, sbatch output files) instead.");
  all.slurm_cluster = "a\nb\xff";
  const auto body = handle_kubelet(request("GET", "/containerLogs/a/b/c"), all).body;
  EXPECT_THAT(body, ::testing::HasSubstr("cluster \"a b\xEF\xBF\xBD\""));
}

TEST(KubeletRoutes, AWrongMethodIs405WithWhatIsAllowed) {
  struct Row {
    std::string method, path, allow;
  };
  for (const Row& row : std::vector<Row>{{"POST", "/pods", "GET, HEAD"},
                                         {"DELETE", "/metrics", "GET, HEAD"},
                                         {"PUT", "/stats/summary", "GET, HEAD, POST"},
                                         {"HEAD", "/containerLogs/ns/pod/c", "GET"},
                                         {"PUT", "/exec/ns/pod/c", "GET, POST"},
                                         {"GET", "/run/ns/pod/c", "POST"},
                                         {"get", "/pods", "GET, HEAD"},
                                         {"GE", "/pods", "GET, HEAD"},
                                         {"", "/pods", "GET, HEAD"}}) {
    const auto response = handle_kubelet(request(row.method, row.path), snapshot());
    EXPECT_EQ(response.status, 405) << row.path;
    EXPECT_EQ(header(response, "Allow"), row.allow);
    EXPECT_EQ(json_of(response)["kind"], "Status");
    EXPECT_EQ(json_of(response)["reason"], "MethodNotAllowed");
    EXPECT_EQ(json_of(response)["code"], 405);
  }
}

TEST(KubeletRoutes, AnUnknownPathIs404) {
  for (const char* path :
       {"/", "/Pods", "/pods/x", "/metrics/", "/exec", "/exec/ns/pod", "/exec/a/b/c/d/e",
        "/portForward/ns", "/portForward/a/b/c/d", "/containerLogs/ns/pod/uid/c", "/logs/",
        "/runningPods/", "/stats", "/debug/pprof/", "/pods%00", "/spec/"}) {
    const auto response = get(path);
    if (std::string_view{path} == "/metrics/") {
      EXPECT_EQ(response.status, 200) << "a slash at the end does not count";
      continue;
    }
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(json_of(response)["kind"], "Status") << path;
    EXPECT_EQ(json_of(response)["apiVersion"], "v1");
    EXPECT_EQ(json_of(response)["status"], "Failure");
    EXPECT_EQ(json_of(response)["reason"], "NotFound");
  }
  EXPECT_EQ(get("/pods%").status, 400);
}

TEST(KubeletRoutes, DisguisedPathsAreNormalized) {
  EXPECT_EQ(get("/%70%6Fds").status, 200);
  EXPECT_EQ(get("/pods/../healthz").body, "ok");
  EXPECT_EQ(get("/containerLogs/ns/pod/..%2f..%2f..%2fhealthz").body, "ok");
  EXPECT_EQ(get("/%63ontainerLogs/ns/pod/c").content_type, "text/plain; charset=utf-8");
}

TEST(KubeletRoutes, StatsNeedTheUseOfTheNode) {
  EXPECT_EQ(get("/stats/summary").status, 200);
  auto blind = snapshot();
  blind.usage.reset();
  const auto response = handle_kubelet(request("GET", "/stats/summary"), blind);
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(json_of(response)["reason"], "InternalError");
}

TEST(KubeletRoutes, StatsOfCpuAndMemoryOnly) {
  auto all = snapshot();
  all.usage->pid_max = 5;
  auto head = request("GET", "/stats/summary");
  EXPECT_TRUE(json_of(handle_kubelet(head, all))["node"].contains("rlimit"));
  head.query = "a=b&only_cpu_and_memory=true";
  EXPECT_FALSE(json_of(handle_kubelet(head, all))["node"].contains("rlimit"));
  head.query = "only_cpu_and_memory=false";
  EXPECT_TRUE(json_of(handle_kubelet(head, all))["node"].contains("rlimit"));
}

}  // namespace kubelet_routes_test
}  // namespace slurmlet::podapi
