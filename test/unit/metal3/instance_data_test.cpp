#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"
#include "metal3/metadata.h"
#include "metal3/samples.h"

namespace slurmlet::metal3 {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFile = "/run/cloud-init/instance-data.json";

std::string with_meta_data(const std::string& members) {
  return R"({"ds": {"meta_data": {"metal3-name": "node-4", "metal3-namespace": "metal3", )" +
         members + "}}}";
}

TEST(InstanceData, ReadsARealFile) {
  const auto reading = parse_instance_data(samples::kInstanceData, kFile);
  ASSERT_TRUE(reading) << reading.error().message;
  ASSERT_TRUE(reading->facts);
  EXPECT_EQ(reading->facts->uuid, samples::kUuid);
  EXPECT_EQ(reading->facts->provider_id, "metal3://metal3/node-4/hpc-8lfpj-759d9");
  EXPECT_EQ(reading->facts->node_name, "hpc-8lfpj-759d9");
  EXPECT_THAT(reading->facts->ip_addresses, ElementsAre("172.22.0.101", "fd00:1::65"));
  EXPECT_EQ(reading->facts->source, kFile);
  EXPECT_THAT(reading->notes, IsEmpty());
}

TEST(InstanceData, OtherCloudsAreNoMetal3AndNoError) {
  for (const char* text :
       {R"({"ds": {"meta_data": {"instance-id": "i-0abc", "local-hostname": "ip-10-0-0-1"}}})",
        R"({"ds": {"meta_data": {"uuid": 7}}})", R"({"ds": {"meta_data": {"uuid": ""}}})",
        R"({"ds": {"meta_data": []}})", R"({"ds": null})", "{}"}) {
    const auto reading = parse_instance_data(text, kFile);
    ASSERT_TRUE(reading) << text;
    EXPECT_FALSE(reading->facts) << text;
  }
}

// OpenStack Nova writes uuid, name and hostname as well.
TEST(InstanceData, UuidAndNameAloneAreNotMetal3) {
  for (const char* more :
       {R"("name": "login-node-old", "hostname": "cn01.novalocal", "project_id": "p")",
        R"("name": "n", "metal3-name": "node-4")", R"("name": "n", "metal3-namespace": "metal3")",
        R"("metal3-name": "", "metal3-namespace": "metal3")",
        R"("metal3-name": "node-4", "metal3-namespace": 7)", R"("providerid": "a/b/c")"}) {
    const auto reading = parse_instance_data(
        R"({"ds": {"meta_data": {"uuid": "u-1", )" + std::string{more} + "}}}", kFile);
    ASSERT_TRUE(reading) << more;
    EXPECT_FALSE(reading->facts) << more;
  }
}

TEST(InstanceData, IsNotFoundIfCloudInitFoundNothing) {
  const auto reading =
      parse_instance_data(R"({"ds": {"meta_data": {}}, "v1": {"cloud_id": "none"}})", kFile);
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, Code::kNotFound);
}

TEST(InstanceData, InvalidJsonNamesTheFileAndTheFix) {
  for (const char* text : {"", "{", "[]", "\"x\"", "nul"}) {
    const auto reading = parse_instance_data(text, kFile);
    ASSERT_FALSE(reading) << text;
    EXPECT_EQ(reading.error().code, Code::kInvalid);
    EXPECT_THAT(reading.error().message, AllOf(HasSubstr(kFile), HasSubstr("cloud-init init")));
  }
}

struct NameCase {
  const char* members;  // after uuid
  const char* name;
  int notes;
};

class NodeName : public ::testing::TestWithParam<NameCase> {};

TEST_P(NodeName, IsTheFirstValidOne) {
  const auto reading = parse_instance_data(
      with_meta_data(R"("uuid": "u-1")" + std::string{GetParam().members}), kFile);
  ASSERT_TRUE(reading && reading->facts);
  EXPECT_EQ(reading->facts->node_name, GetParam().name);
  EXPECT_EQ(reading->notes.size(), static_cast<std::size_t>(GetParam().notes));
}

INSTANTIATE_TEST_SUITE_P(
    Table, NodeName,
    ::testing::Values(
        NameCase{"", "", 0}, NameCase{R"(, "name": "A", "local-hostname": "b")", "a", 0},
        NameCase{R"(, "local-hostname": "b.example.org", "local_hostname": "c")", "b.example.org",
                 0},
        NameCase{R"(, "local_hostname": "c")", "c", 0},
        NameCase{R"(, "name": "metal3~node-4", "local-hostname": "node-4")", "node-4", 1},
        NameCase{R"(, "name": "metal3~node-4")", "", 1},
        NameCase{R"(, "name": "CI_MISSING_JINJA_VAR/name", "local-hostname": "b")", "b", 1},
        NameCase{R"(, "name": "-x", "local-hostname": "a_b", "local_hostname": "a..b")", "", 3},
        NameCase{R"(, "name": 7, "local-hostname": " b ")", "b", 0}));

struct ProviderCase {
  const char* value;
  const char* provider_id;
};

class ProviderId : public ::testing::TestWithParam<ProviderCase> {};

TEST_P(ProviderId, HasExactlyThreeSegmentsOrIsRejectedWithAFix) {
  const auto reading = parse_instance_data(
      with_meta_data(R"("uuid": "u-1", "providerid": ")" + std::string{GetParam().value} + "\""),
      kFile);
  ASSERT_TRUE(reading && reading->facts) << "the uuid alone still matches the machine";
  EXPECT_EQ(reading->facts->provider_id, GetParam().provider_id);
  if (reading->facts->provider_id.empty() && *GetParam().value != '\0') {
    EXPECT_THAT(reading->notes, ElementsAre(AllOf(HasSubstr(kFile), HasSubstr("providerid"),
                                                  HasSubstr("Metal3DataTemplate"))));
  } else {
    EXPECT_THAT(reading->notes, IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Table, ProviderId,
                         ::testing::Values(ProviderCase{"metal3/node-0/hpc-x7k2p-abcde",
                                                        "metal3://metal3/node-0/hpc-x7k2p-abcde"},
                                           ProviderCase{"", ""}, ProviderCase{"8b2a2f8a-1111", ""},
                                           ProviderCase{"metal3/node-0", ""},
                                           ProviderCase{"metal3//hpc", ""},
                                           ProviderCase{"/node-0/hpc", ""},
                                           ProviderCase{"metal3/node-0/", ""},
                                           ProviderCase{"metal3/node-0/hpc/x", ""},
                                           ProviderCase{"metal3://metal3/node-0/hpc", ""},
                                           ProviderCase{"metal3/node-0/{{ name }}", ""},
                                           ProviderCase{"CI_MISSING_JINJA_VAR/a/b", ""}));

TEST(InstanceData, AUuidThatCannotBeALabelIsAnErrorWithAFix) {
  for (const char* uuid : {"CI_MISSING_JINJA_VAR/uuid", "not a label", "-x"}) {
    const auto reading =
        parse_instance_data(with_meta_data(R"("uuid": ")" + std::string{uuid} + "\""), kFile);
    ASSERT_FALSE(reading) << uuid;
    EXPECT_EQ(reading.error().code, Code::kInvalid);
    EXPECT_THAT(reading.error().message, AllOf(HasSubstr(kFile), HasSubstr("Metal3DataTemplate")));
  }
}

TEST(InstanceData, InvalidNetworkDataMeansNoAddresses) {
  for (const char* network :
       {"null", "[]", R"({"networks": {}})", R"({"networks": [7, {"ip_address": 7}]})",
        R"({"networks": [{"ip_address": "CI_MISSING"}, {"ip_address": "1.2.3"}]})"}) {
    const auto reading = parse_instance_data(
        R"({"ds": {"meta_data": {"uuid": "u", "metal3-name": "n", "metal3-namespace": "m"},
            "network_json": )" +
            std::string{network} + "}}",
        kFile);
    ASSERT_TRUE(reading && reading->facts) << network;
    EXPECT_THAT(reading->facts->ip_addresses, IsEmpty()) << network;
  }
}

TEST(InstanceData, ReadsFromDisk) {
  fakes::TempTree tree;
  EXPECT_EQ(read_instance_data(tree.path("i.json")).error().code, Code::kNotFound);
  tree.file("i.json", samples::kInstanceData);
  const auto reading = read_instance_data(tree.path("i.json"));
  ASSERT_TRUE(reading && reading->facts);
  EXPECT_EQ(reading->facts->source, tree.path("i.json").string());
}

}  // namespace
}  // namespace slurmlet::metal3
