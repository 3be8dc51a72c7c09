#include "node/labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurmlet::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TaintsTest, AreWrittenAsForTheKubelet) {
  const auto taints =
      parse_taints("site.example/hpc=yes:NoSchedule, boot:NoExecute,x=:PreferNoSchedule");
  ASSERT_TRUE(taints);
  EXPECT_THAT(*taints,
              ElementsAre(Taint{"site.example/hpc", "yes", "NoSchedule"},
                          Taint{"boot", "", "NoExecute"}, Taint{"x", "", "PreferNoSchedule"}));
  EXPECT_THAT(*parse_taints(""), IsEmpty());
}

TEST(TaintsTest, SayWhatIsWrong) {
  const struct {
    const char* text;
    const char* problem;
  } table[] = {
      {"a=b", "must be KEY=VALUE:EFFECT"},
      {"a=b:NoStart", "the effect must be"},
      {"a=b:", "the effect must be"},
      {":NoSchedule", "key is empty"},
      {"-a:NoSchedule", "the key must be"},
      {"a=b c:NoSchedule", "the value must be"},
      {"a:NoSchedule,a=b:NoSchedule", "another taint has the same key"},
      {"virtual-kubelet.io/provider=x:NoSchedule", "slurmlet always sets"},
  };
  for (const auto& row : table) {
    const auto taints = parse_taints(row.text);
    ASSERT_FALSE(taints) << row.text;
    EXPECT_THAT(taints.error().message, HasSubstr(row.problem));
  }
}

}  // namespace
}  // namespace slurmlet::node
