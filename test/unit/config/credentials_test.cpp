#include "config/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/fake_sources.h"
#include "config/settings_table.h"

namespace slurmlet::config {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kDirectory = "/run/credentials/slurmlet.service";

FakeSources with(const std::vector<std::string>& names) {
  FakeSources sources;
  sources.environment["CREDENTIALS_DIRECTORY"] = kDirectory;
  for (const auto& name : names) {
    sources.files[std::string(kDirectory) + "/" + name] = "top secret";
  }
  return sources;
}

TEST(CredentialsTest, ACommandBesideTheUnitFindsItsCredentials) {
  FakeSources sources;
  sources.files["/etc/credstore/slurmlet.bootstrap-kubeconfig"] = "top secret";
  const auto found = [&] {
    return with_unit_credentials(sources.lookup(), sources.reader())("CREDENTIALS_DIRECTORY");
  };
  EXPECT_EQ(found(), "/etc/credstore");
  sources.files["/run/credentials/slurmlet.service/slurmlet.token"] = "top secret";
  EXPECT_EQ(found(), "/run/credentials/slurmlet.service") << "the running unit's own come first";
  sources.environment = {{"CREDENTIALS_DIRECTORY", "/run/mine"}, {"KUBECONFIG", "/k"}};
  EXPECT_EQ(found(), "/run/mine");
  EXPECT_EQ(with_unit_credentials(sources.lookup(), sources.reader())("KUBECONFIG"), "/k");
  sources.environment.clear();
  sources.files.clear();
  EXPECT_EQ(found(), std::nullopt);
}

TEST(CredentialsTest, EachNameIsTheDefaultOfItsSetting) {
  std::set<std::string_view> keys;
  for (const auto& [name, key, rivals] : credential_names()) {
    SCOPED_TRACE(name);
    ASSERT_NE(find_row(key), nullptr) << key;
    EXPECT_TRUE(keys.insert(key).second) << key;
    Draft draft;
    const FakeSources sources = with({std::string(name)});
    apply_credentials(sources.lookup(), sources.reader(), draft);
    EXPECT_EQ(value_text(*find_row(key), draft.settings),
              std::string(kDirectory) + "/" + std::string(name));
    EXPECT_THAT(draft.problems(), IsEmpty());
    EXPECT_THAT(draft.settings.warnings, IsEmpty());
    EXPECT_THAT(effective_settings_json(draft.settings), Not(HasSubstr("top secret")));
  }
}

TEST(CredentialsTest, ABootstrapLeavesItsKubeconfigInTheStateDirectory) {
  const Settings settings = loaded(with({"slurmlet.bootstrap-token", "slurmlet.ca.crt"}),
                                   {"run", "--kubernetes-server", "https://192.0.2.1:6443"});
  EXPECT_EQ(settings.kubernetes.bootstrap_token_file,
            "/run/credentials/slurmlet.service/slurmlet.bootstrap-token");
  EXPECT_EQ(settings.kubernetes.ca_file, "/run/credentials/slurmlet.service/slurmlet.ca.crt");
  EXPECT_EQ(settings.kubernetes.kubeconfig, "/var/lib/slurmlet/kubeconfig");
}

TEST(CredentialsTest, WhatSomebodyGaveWins) {
  Settings settings = loaded(with({"slurmlet.kubeconfig"}), {"run", "--kubeconfig", "/k"});
  EXPECT_EQ(settings.kubernetes.kubeconfig, "/k");
  EXPECT_THAT(settings.warnings, IsEmpty());
  settings = loaded(with({"slurmlet.bootstrap-kubeconfig"}), {"run", "--kubeconfig", "/k"});
  EXPECT_EQ(settings.kubernetes.bootstrap_kubeconfig, "");
  EXPECT_THAT(settings.warnings, ElementsAre(AllOf(HasSubstr("slurmlet.bootstrap-kubeconfig"),
                                                   HasSubstr("--kubeconfig"))));
}

TEST(CredentialsTest, EveryCombinationOfCredentialsGivesAConfigurationOrOneClearProblem) {
  // With each two of them beside each other nothing contradicts itself: at most something is
  // missing that no credential can give.
  for (const auto& first : credential_names()) {
    for (const auto& second : credential_names()) {
      const std::string error =
          with({std::string(first.name), std::string(second.name)}).error_with({"run"});
      EXPECT_THAT(error, Not(HasSubstr("both set"))) << first.name << ", " << second.name;
    }
  }
}

TEST(CredentialsTest, ABootstrapComesBeforeAKubeconfig) {
  const Settings settings =
      loaded(with({"slurmlet.bootstrap-kubeconfig", "slurmlet.kubeconfig"}), {"run"});
  EXPECT_EQ(settings.kubernetes.kubeconfig, "/var/lib/slurmlet/kubeconfig");
  EXPECT_THAT(settings.warnings, ElementsAre(AllOf(HasSubstr("credential slurmlet.kubeconfig"),
                                                   HasSubstr("slurmlet.bootstrap-kubeconfig"))));
}

TEST(CredentialsTest, WithoutADirectoryThereAreNone) {
  FakeSources sources = with({"slurmlet.kubeconfig"});
  sources.environment.clear();
  EXPECT_THAT(sources.error_with({"run"}), HasSubstr("no API server is configured"));
  sources.environment["CREDENTIALS_DIRECTORY"] = "";
  EXPECT_THAT(sources.error_with({"run"}), HasSubstr("no API server is configured"));
}

}  // namespace
}  // namespace slurmlet::config
