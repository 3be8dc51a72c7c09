#include "node/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::node {
namespace {

using ::testing::HasSubstr;

TEST(LabelsTest, Keys) {
  struct Row {
    std::string key;
    bool valid;
  };
  const Row kRows[] = {
      {"type", true},
      {"a", true},
      {"Rack_1.b-c", true},
      {"metal3.io/uuid", true},
      {"cluster.x-k8s.io/machine", true},
      {"hpc.example.org/" + std::string(63, 'x'), true},
      {std::string(253, 'd') + "/x", true},
      {"", false},
      {"/x", false},
      {"example.org/", false},
      {"example.org/a/b", false},
      {"Example.org/a", false},
      {"-example.org/a", false},
      {"example..org/a", false},
      {"-a", false},
      {"a-", false},
      {"a b", false},
      {"a:b", false},
      {"r\xc3\xa4"
       "ck",
       false},
      {std::string(64, 'x'), false},
      {std::string(254, 'd') + "/x", false},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(!label_key_problem(row.key).has_value(), row.valid) << row.key;
  }
}

TEST(LabelsTest, Values) {
  struct Row {
    std::string value;
    bool valid;
  };
  const Row kRows[] = {
      {"", true},
      {"a", true},
      {"8b2a2f8a-0001-4d2f", true},
      {"v1.2_3", true},
      {std::string(63, 'x'), true},
      {"-a", false},
      {"a.", false},
      {"a b", false},
      {"a/b", false},
      {"a+b", false},
      {std::string(64, 'x'), false},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(!label_value_problem(row.value).has_value(), row.valid) << row.value;
  }
  EXPECT_THAT(*label_value_problem(std::string(64, 'x')), HasSubstr("longer than 63"));
}

TEST(LabelsTest, NodeRestrictionAllows) {
  for (const char* key : {"type",
                          "metal3.io/uuid",
                          "nvidia.com/gpu.product",
                          "cluster.x-k8s.io/x",
                          "example.org/a",
                          "notkubernetes.io/a",
                          "kubernetes.io.example.org/a",
                          "kubernetes.io/hostname",
                          "kubernetes.io/os",
                          "kubernetes.io/arch",
                          "beta.kubernetes.io/os",
                          "beta.kubernetes.io/arch",
                          "topology.kubernetes.io/zone",
                          "topology.kubernetes.io/region",
                          "failure-domain.beta.kubernetes.io/zone",
                          "failure-domain.beta.kubernetes.io/region",
                          "node.kubernetes.io/instance-type",
                          "beta.kubernetes.io/instance-type",
                          "kubelet.kubernetes.io/x",
                          "a.kubelet.kubernetes.io/x",
                          "node.kubernetes.io/x",
                          "a.node.kubernetes.io/x",
                          "node.kubernetes.io/exclude-from-external-load-balancers"}) {
    EXPECT_EQ(node_restriction_problem(key), std::nullopt) << key;
  }
}

TEST(LabelsTest, NodeRestrictionForbidsAndSaysWhatToDo) {
  struct Row {
    const char* key;
    const char* says;
  };
  const Row kRows[] = {
      {"node-role.kubernetes.io/slurm", "does not allow a node to give itself a role"},
      {"kubernetes.io/role", "does not allow a node to give itself a role"},
      {"node-restriction.kubernetes.io/a", "have an administrator or Cluster API"},
      {"x.node-restriction.kubernetes.io/a", "have an administrator or Cluster API"},
      {"alpha.service-controller.kubernetes.io/exclude-balancer",
       "labels of alpha.service-controller.kubernetes.io"},
      {"scheduling.k8s.io/x", "use a domain of your own"},
      {"k8s.io/x", "labels of k8s.io"},
      {"kubernetes.io/x", "labels of kubernetes.io"},
      {"topology.kubernetes.io/rack", "labels of topology.kubernetes.io"},
      {"xnode.kubernetes.io/x", "labels of xnode.kubernetes.io"},
  };
  for (const auto& row : kRows) {
    const auto problem = node_restriction_problem(row.key);
    ASSERT_TRUE(problem) << row.key;
    EXPECT_THAT(*problem, HasSubstr(row.says)) << row.key;
  }
}

TEST(LabelsTest, NodeNames) {
  struct Row {
    std::string name;
    bool valid;
  };
  const Row kRows[] = {
      {"n1", true},
      {"hpc-x7k2p", true},
      {"n1.cluster.example.org", true},
      {"0", true},
      {std::string(253, 'n'), true},
      {"", false},
      {"N1", false},
      {"n_1", false},
      {"n1.", false},
      {".n1", false},
      {"-n1", false},
      {"n1-", false},
      {"n1 ", false},
      {"n..1", false},
      {std::string(254, 'n'), false},
      {"n1/x", false},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(is_rfc1123_subdomain(row.name), row.valid) << row.name;
  }
}

}  // namespace
}  // namespace slurmlet::node
