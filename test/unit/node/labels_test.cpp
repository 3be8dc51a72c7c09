#include "node/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace slurmlet::node {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

TEST(LabelsTest, Keys) {
  for (const std::string& key :
       {"type"s, "a"s, "Rack_1.b-c"s, "metal3.io/uuid"s, "cluster.x-k8s.io/machine"s,
        "hpc.example.org/" + std::string(63, 'x'), std::string(253, 'd') + "/x"}) {
    EXPECT_FALSE(label_key_problem(key)) << key;
  }
  for (const std::string& key :
       {""s, "/x"s, "example.org/"s, "example.org/a/b"s, "Example.org/a"s, "-example.org/a"s,
        "example..org/a"s, "-a"s, "a-"s, "a b"s, "a:b"s, "r\xc3\xa4k"s, std::string(64, 'x'),
        std::string(254, 'd') + "/x"}) {
    EXPECT_TRUE(label_key_problem(key)) << key;
  }
}

TEST(LabelsTest, Values) {
  for (const std::string& value :
       {""s, "a"s, "8b2a2f8a-0001-4d2f"s, "v1.2_3"s, std::string(63, 'x')}) {
    EXPECT_FALSE(label_value_problem(value)) << value;
  }
  for (const std::string& value : {"-a"s, "a."s, "a b"s, "a/b"s, "a+b"s, std::string(64, 'x')}) {
    EXPECT_TRUE(label_value_problem(value)) << value;
  }
  EXPECT_THAT(*label_value_problem(std::string(64, 'x')), HasSubstr("63"));
}

TEST(LabelsTest, NodeRestrictionAllows) {
  for (const auto key :
       split("type metal3.io/uuid nvidia.com/gpu.product cluster.x-k8s.io/x example.org/a "
             "notkubernetes.io/a kubernetes.io.example.org/a kubernetes.io/hostname "
             "kubernetes.io/os kubernetes.io/arch beta.kubernetes.io/os beta.kubernetes.io/arch "
             "topology.kubernetes.io/zone topology.kubernetes.io/region "
             "failure-domain.beta.kubernetes.io/zone failure-domain.beta.kubernetes.io/region "
             "node.kubernetes.io/instance-type beta.kubernetes.io/instance-type "
             "kubelet.kubernetes.io/x a.kubelet.kubernetes.io/x node.kubernetes.io/x "
             "a.node.kubernetes.io/x node.kubernetes.io/exclude-from-external-load-balancers",
             ' ')) {
    EXPECT_EQ(node_restriction_problem(std::string{key}), std::nullopt) << key;
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
  for (const std::string& name :
       {"n1"s, "hpc-x7k2p"s, "n1.cluster.example.org"s, "0"s, std::string(253, 'n')}) {
    EXPECT_TRUE(is_rfc1123_subdomain(name)) << name;
  }
  for (const std::string& name : {""s, "N1"s, "n_1"s, "n1."s, ".n1"s, "-n1"s, "n1-"s, "n1 "s,
                                  "n..1"s, "n1/x"s, std::string(254, 'n')}) {
    EXPECT_FALSE(is_rfc1123_subdomain(name)) << name;
  }
}

}  // namespace
}  // namespace slurmlet::node
