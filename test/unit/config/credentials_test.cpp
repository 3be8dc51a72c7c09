#include "config/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "config/fake_sources.h"
#include "config/settings_table.h"

namespace slurmlet::config {
namespace {

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
  sources.environment["CREDENTIALS_DIRECTORY"] = "/run/mine";
  EXPECT_EQ(found(), "/run/mine");
  sources.environment.clear();
  sources.files.clear();
  EXPECT_EQ(found(), std::nullopt);
}

TEST(CredentialsTest, OtherVariablesPassWhileCredentialsAreFound) {
  FakeSources sources;
  sources.files["/etc/credstore/slurmlet.token"] = "top secret";
  sources.environment["KUBECONFIG"] = "/k";
  EXPECT_EQ(with_unit_credentials(sources.lookup(), sources.reader())("KUBECONFIG"), "/k");
}

TEST(CredentialsTest, EachNameIsTheDefaultOfItsSetting) {
  std::set<std::string_view> keys;
  for (const auto& [name, key, rivals] : credential_names()) {
    ASSERT_NE(find_row(key), nullptr) << key;
    EXPECT_TRUE(keys.insert(key).second) << key;
    Draft draft;
    const FakeSources sources = with({std::string(name)});
    apply_credentials(sources.lookup(), sources.reader(), draft);
    EXPECT_EQ(value_text(*find_row(key), draft.settings),
              std::string(kDirectory) + "/" + std::string(name));
    EXPECT_THAT(draft.problems(), IsEmpty()) << name;
    EXPECT_THAT(draft.settings.warnings, IsEmpty()) << name;
  }
}

TEST(CredentialsTest, AKubeconfigAloneIsEnough) {
  const Settings settings = loaded(with({"slurmlet.kubeconfig"}), {"run"});
  EXPECT_EQ(settings.kubernetes.kubeconfig,
            "/run/credentials/slurmlet.service/slurmlet.kubeconfig");
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
  const Settings settings = loaded(with({"slurmlet.kubeconfig"}), {"run", "--kubeconfig", "/k"});
  EXPECT_EQ(settings.kubernetes.kubeconfig, "/k");
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(CredentialsTest, OneThatAnotherSettingLeavesNoRoomForIsNotUsed) {
  const Settings settings =
      loaded(with({"slurmlet.bootstrap-kubeconfig"}), {"run", "--kubeconfig", "/k"});
  EXPECT_EQ(settings.kubernetes.bootstrap_kubeconfig, "");
  EXPECT_THAT(settings.warnings,
              ElementsAre("the credential slurmlet.bootstrap-kubeconfig is not used, since "
                          "--kubeconfig is set"));
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
  EXPECT_THAT(settings.warnings,
              ElementsAre("the credential slurmlet.kubeconfig is not used, since credential "
                          "slurmlet.bootstrap-kubeconfig is set"));
}

TEST(CredentialsTest, WithoutADirectoryThereAreNone) {
  FakeSources sources = with({"slurmlet.kubeconfig"});
  sources.environment.clear();
  EXPECT_THAT(sources.error_with({"run"}), HasSubstr("no API server is configured"));
  sources.environment["CREDENTIALS_DIRECTORY"] = "";
  EXPECT_THAT(sources.error_with({"run"}), HasSubstr("no API server is configured"));
}

TEST(CredentialsTest, WhatIsInThemIsNotPartOfTheSettings) {
  const Settings settings = loaded(with({"slurmlet.kubeconfig"}), {"run"});
  EXPECT_THAT(effective_settings_json(settings), Not(HasSubstr("top secret")));
}

}  // namespace
}  // namespace slurmlet::config
