#include "credentials/serving_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "fakes/temp_tree.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::hours;
using std::chrono::system_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Pair {
  std::string certificate, key;
};

Pair make_pair_for(const std::string& name) {
  const auto key = tls::generate_key();
  const auto now = system_clock::now();
  const auto certificate =
      tls::make_self_signed(*key, {name, {}, {name}, {}}, now - hours{1}, now + hours{2});
  return {*certificate, *key};
}

class ServingCertificateTest : public ::testing::Test {
 protected:
  void write(const Pair& pair) {
    tree.file("tls.crt", pair.certificate);
    tree.file("tls.key", pair.key);
  }
  config::EndpointSettings files() const {
    config::EndpointSettings settings;
    settings.certificate_file = tree.path("tls.crt");
    settings.key_file = tree.path("tls.key");
    return settings;
  }
  Status reload(ServingCertificate& serving) const {
    return serving.use(ServingCertificate::read(files()));
  }
  static std::string shown(const ServingCertificate& serving) {
    return serving.identity() ? serving.identity()->certificate().common_name : "nothing";
  }

  fakes::TempTree tree;
};

TEST_F(ServingCertificateTest, WithoutFilesASelfSignedOneServesUntilOneIsIssued) {
  ServingCertificate serving{{}, "n1", ""};
  EXPECT_EQ(shown(serving), "nothing");
  ASSERT_TRUE(serving.start(system_clock::now()));
  EXPECT_EQ(shown(serving), "n1");
  EXPECT_THAT(serving.identity()->certificate().dns_names, ElementsAre("n1"));
  EXPECT_TRUE(serving.is_self_signed());
  EXPECT_GT(*serving.not_after(), system_clock::now() + hours{24 * 300});
  const Pair pair = make_pair_for("issued");
  ASSERT_TRUE(serving.use({pair.certificate, pair.key, {}}));
  EXPECT_EQ(shown(serving), "issued");
  EXPECT_FALSE(serving.is_self_signed());
  // Another client CA keeps the certificate.
  ASSERT_TRUE(serving.set_cluster_ca(make_pair_for("ca").certificate));
  EXPECT_EQ(shown(serving), "issued");
  EXPECT_FALSE(serving.is_self_signed());
}

TEST_F(ServingCertificateTest, WhereNothingIsServedAnotherCaIsNoFailure) {
  config::EndpointSettings settings = files();
  settings.port = 0;
  ServingCertificate serving{settings, "n1", ""};  // not started then
  EXPECT_TRUE(serving.set_cluster_ca(make_pair_for("ca").certificate));
  EXPECT_THAT(serving.files(), IsEmpty());
  settings.certificate_file.clear();
  ServingCertificate issued{settings, "n1", ""};
  EXPECT_TRUE(issued.set_cluster_ca(make_pair_for("ca").certificate));
}

TEST_F(ServingCertificateTest, FilesAreReadAgainAndABrokenReplacementIsRefusedByName) {
  write(make_pair_for("first"));
  ServingCertificate serving{files(), "n1", ""};
  ASSERT_TRUE(serving.start(system_clock::now()));
  EXPECT_EQ(shown(serving), "first");
  EXPECT_FALSE(serving.is_self_signed());
  const Pair good = make_pair_for("second");
  write(good);
  ASSERT_TRUE(reload(serving));
  EXPECT_EQ(shown(serving), "second");
  const std::tuple<std::string, std::string, const char*> kRows[] = {
      {"garbage", good.key, "tls.crt"},
      {"", good.key, "tls.crt"},
      {good.certificate, "", "tls.key"},
      {make_pair_for("other").certificate, good.key, "tls.key"}};
  for (const auto& [certificate, key, named] : kRows) {
    write({certificate, key});
    const Status refused = reload(serving);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr(tree.path(named).string()));
    EXPECT_EQ(shown(serving), "second");
  }
}

TEST_F(ServingCertificateTest, BrokenFilesAtTheStartLeaveASelfSignedOne) {
  write({"garbage", "garbage"});
  ServingCertificate serving{files(), "n1", ""};
  const Status started = serving.start(system_clock::now());
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("tls.crt"));
  EXPECT_EQ(shown(serving), "n1");
  EXPECT_TRUE(serving.is_self_signed());
  write(make_pair_for("cured"));
  ASSERT_TRUE(reload(serving));
  EXPECT_EQ(shown(serving), "cured");
  EXPECT_FALSE(serving.is_self_signed());
}

// Nobody would be let in, and the log would say that the new one is in use.
TEST_F(ServingCertificateTest, AClientCaThatIsNoneIsNamedAndTheEndpointServesAllTheSame) {
  config::EndpointSettings settings;
  settings.client_ca_file = tree.path("ca.crt");
  tree.file("ca.crt", "garbage");
  ServingCertificate serving{settings, "n1", ""};
  const Status started = serving.start(system_clock::now());
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("ca.crt"));
  EXPECT_THAT(serving.files(), ElementsAre(tree.path("ca.crt")));
  EXPECT_EQ(shown(serving), "n1");
  tree.file("ca.crt", make_pair_for("ca").certificate);
  EXPECT_TRUE(serving.use(ServingCertificate::read(settings)));
  EXPECT_EQ(shown(serving), "n1");
  const auto before = serving.identity();
  tree.file("ca.crt", "");
  const Status emptied = serving.use(ServingCertificate::read(settings));
  ASSERT_FALSE(emptied);
  EXPECT_THAT(emptied.error().message, HasSubstr("ca.crt"));
  EXPECT_EQ(serving.identity(), before);
}

}  // namespace
}  // namespace slurmlet::credentials
