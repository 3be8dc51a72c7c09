#include "kube/scale_api.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fakes/fake_http_client.h"

namespace slurmlet::kube {
namespace scale_api_test {

const std::string kBase = "/apis/cluster.x-k8s.io/";
constexpr const char* kOne =
    R"({"items":[{"metadata":{"namespace":"ns","name":"d","resourceVersion":"7"},
                  "spec":{"clusterName":"c","replicas":3}}]})";

// With a Cluster of its own the operator never sees another's.
TEST(ScaleApi, ListsThoseOfItsCluster) {
  fakes::FakeHttpClient client;
  client.answer(200, kOne);
  const auto all = RestScaleApi{client, {}, ""}.list();
  ASSERT_TRUE(all);
  EXPECT_EQ(client.last().path,
            kBase + "v1beta2/machinedeployments?labelSelector=cluster.x-k8s.io%2Fcluster-name");
  EXPECT_EQ(all->at(0).replicas, 3);
  client.answer(404, R"({"kind":"Status","reason":"NotFound"})");
  client.answer(200, kOne);
  const auto own = RestScaleApi{client, {}, "ns/c"}.list();
  ASSERT_TRUE(own);
  EXPECT_EQ(client.last().path, kBase +
                                    "v1beta1/namespaces/ns/machinedeployments"
                                    "?labelSelector=cluster.x-k8s.io%2Fcluster-name%3Dc");
  EXPECT_EQ(own->at(0).api_version, "v1beta1");
}

TEST(ScaleApi, WritesOnlyWhatItHasRead) {
  fakes::FakeHttpClient client;
  client.answer(200, kOne);
  RestScaleApi api{client, {}, ""};
  const auto all = api.list();
  client.answer(200, "{}");
  ASSERT_TRUE(api.set_replicas(all->at(0), 4));
  EXPECT_EQ(client.last().method, "PATCH");
  EXPECT_EQ(client.last().path, kBase +
                                    "v1beta2/namespaces/ns/machinedeployments/d/scale"
                                    "?fieldManager=slurmlet-operator");
  EXPECT_EQ(nlohmann::json::parse(client.last().body),
            nlohmann::json::parse(R"({"metadata":{"resourceVersion":"7"},"spec":{"replicas":4}})"));
}

}  // namespace scale_api_test
}  // namespace slurmlet::kube
