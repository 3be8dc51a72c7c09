#include "config/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/fake_sources.h"

namespace slurmlet::config {
namespace provider_config_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

Draft apply(const std::string& text, const std::string& node_name = "n1") {
  Draft draft;
  draft.settings.node.name = node_name;
  apply_provider_config(text, "p.json", draft);
  return draft;
}

TEST(ProviderConfigTest, TheFileOfABareMetalNodeIsTakenButItsResourcesHaveNoEffect) {
  const Draft draft = apply(R"({
    "n1": {"cpu": "2", "memory": "0Gi", "pods": "5", "others": {"nvidia.com/gpu": "4"},
           "labels": {"metal3.io/uuid": "8b2a2f8a-0001", "rack": "r1"},
           "providerID": "metal3://metal3/node-0/n1"}
})");
  EXPECT_THAT(draft.problems(), IsEmpty());
  EXPECT_THAT(draft.settings.warnings, IsEmpty());
  EXPECT_EQ(draft.settings.node.metal3_uuid, "8b2a2f8a-0001");
  EXPECT_EQ(draft.settings.node.provider_id, "metal3://metal3/node-0/n1");
  EXPECT_THAT(draft.settings.node.labels, ElementsAre(Pair("rack", "r1")));
}

TEST(ProviderConfigTest, Problems) {
  struct Row {
    const char* text;
    const char* problem;
  };
  const Row kRows[] = {
      {R"({"n1": {"pod": "0"}})", "p.json:1:9: unknown key \"pod\""},
      {R"({"n1": {"labels": {"metal3.io/uuid": "CI_MISSING_JINJA_VAR/uuid"}}})",
       "node.metal3UUID is \"CI_MISSING_JINJA_VAR/uuid\"; cloud-init had no value"},
      {R"({"n1": {"labels": {"rack": "CI_MISSING_JINJA_VAR/rack"}}})", "cloud-init had no value"},
      {R"({"n1": {"labels": {"node-role.kubernetes.io/slurm": ""}}})",
       "labels has the label \"node-role.kubernetes.io/slurm\": Kubernetes does not allow a node "
       "to"},
      {R"({"n1": {"labels": {"rack": true}}})", "label \"rack\" must be text"},
      {R"({"n1": {"labels": ["rack"]}})", "labels must be a map"},
      {R"({"n1": {"providerID": "metal3://8b2a2f8a"}})", "is no longer supported"},
      {R"({"n1": []})", "the entry of \"n1\" must be an object"},
      {R"({"n2": {}})",
       "p.json:1:1: no entry for node \"n1\"; its first is for \"n2\": give the same name as "
       "--nodename"},
      {R"({"n11": {}, "zzzzzzz": {}})", "no entry for node \"n1\"; its first is for \"n11\""},
      {R"(["n1"])", "it must be a JSON object"},
      {R"({"n1": {)", "p.json:"},
  };
  for (const auto& row : kRows) {
    EXPECT_THAT(apply(row.text).problems(), ElementsAre(HasSubstr(row.problem))) << row.text;
  }
  EXPECT_THAT(apply(R"({"n1": {}})", "").problems(), ElementsAre(HasSubstr("--nodename")));
}

TEST(ProviderConfigTest, AContradictionToTheSettingsIsRefused) {
  FakeSources sources;
  sources.files["/p.json"] = R"({"n1": {"labels": {"metal3.io/uuid": "b", "rack": "r2"}}})";
  const std::vector<std::string> base = {"print-node", "--nodename=n1",
                                         "--provider-config=/p.json"};
  auto other = base;
  other.emplace_back("--node-metal3-uuid=a");
  EXPECT_THAT(sources.error_with(other),
              HasSubstr("node.metal3UUID is \"b\", but --node-metal3-uuid is \"a\""));
  auto same = base;
  same.insert(same.end(), {"--node-metal3-uuid=b", "--node-labels=rack=r1"});
  const auto settings = sources.load_with(same);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->node.metal3_uuid, "b");
  EXPECT_THAT(settings->node.labels, ElementsAre(Pair("rack", "r1")));
}

TEST(ProviderConfigTest, AnAbsentFileIsAnError) {
  EXPECT_EQ(FakeSources{}.error_with({"print-node", "--provider-config=/p.json"}),
            "--provider-config /p.json: open /p.json: No such file or directory");
}

}  // namespace provider_config_test
}  // namespace slurmlet::config
