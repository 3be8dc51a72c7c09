#include "credentials/certificate_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace slurmlet::credentials {
namespace certificate_rules_test {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const WallTime kNow{seconds{1795183200}};

tls::CertificateSubject serving() {
  return {"system:node:n1", {"system:nodes"}, {"n1", "n1.example"}, {"192.0.2.1", "2001:db8::1"}};
}

tls::CertificateSummary certificate_for(const tls::CertificateSubject& subject) {
  tls::CertificateSummary summary{subject, {}, {}};
  summary.not_before = kNow - hours{1};
  summary.not_after = kNow + hours{9};
  return summary;
}

TEST(NormalizedTest, OneOrderAndOneForm) {
  const auto subject = normalized({"CN",
                                   {"b", "a", "b"},
                                   {"N1.Example", "n1", "n1.example"},
                                   {"2001:DB8:0::1", "192.0.2.1", "2001:db8::1", "nonsense"}});
  EXPECT_EQ(subject.common_name, "CN");
  EXPECT_THAT(subject.organizations, ElementsAre("a", "b"));
  EXPECT_THAT(subject.dns_names, ElementsAre("n1", "n1.example"));
  EXPECT_THAT(subject.ip_addresses, ElementsAre("192.0.2.1", "2001:db8::1", "nonsense"));
  EXPECT_EQ(normalized(subject), subject);
}

TEST(CertificateRequestNameTest, DiffersInWhateverDiffers) {
  auto other_name = serving();
  other_name.common_name = "system:node:n2";
  auto other_group = serving();
  other_group.organizations.emplace_back("b");
  auto fewer = serving();
  fewer.dns_names.pop_back();
  auto moved = serving();  // the same texts in another list
  moved.dns_names = {};
  moved.ip_addresses = {"n1", "n1.example", "192.0.2.1", "2001:db8::1"};
  auto joined = serving();
  joined.dns_names = {"n1\nd10:n1.example"};
  std::set<std::string> names;
  for (const auto& subject : {serving(), other_name, other_group, fewer, moved, joined}) {
    names.insert(certificate_request_name("00", "signer", subject));
  }
  names.insert(certificate_request_name("01", "signer", serving()));
  names.insert(certificate_request_name("00", "signer2", serving()));
  EXPECT_EQ(names.size(), 8U);
  EXPECT_THAT(names, ::testing::Each(MatchesRegex("node-csr-[0-9a-f]+")));
  EXPECT_EQ(names.count(certificate_request_name("00", "signer", serving())), 1U);
}

TEST(NamesExactlyTest, OrderAndFormDoNotMatter) {
  auto certificate = certificate_for(serving());
  std::swap(certificate.dns_names[0], certificate.dns_names[1]);
  certificate.dns_names[0] = "N1.EXAMPLE";
  EXPECT_TRUE(names_exactly(certificate, serving()));
  certificate.ip_addresses.emplace_back("192.0.2.2");
  EXPECT_FALSE(names_exactly(certificate, serving()));
  certificate.ip_addresses = {"192.0.2.1"};
  EXPECT_FALSE(names_exactly(certificate, serving()));
}

TEST(IssuedProblemTest, Table) {
  struct Row {
    const char* what;
    void (*change)(tls::CertificateSummary&);
    const char* problem;  // "" = none
  };
  const Row kRows[] = {
      {"as asked", [](auto&) {}, ""},
      {"more names", [](auto& c) { c.dns_names.emplace_back("alias"); }, ""},
      {"not valid yet by our clock", [](auto& c) { c.not_before = kNow + hours{1}; }, ""},
      {"another name", [](auto& c) { c.common_name = "system:node:n2"; }, "system:node:n2"},
      {"another group", [](auto& c) { c.organizations = {"system:masters"}; }, "system:masters"},
      {"one more group", [](auto& c) { c.organizations.emplace_back("x"); }, "x"},
      {"no group", [](auto& c) { c.organizations.clear(); }, "instead of"},
      {"a DNS name less", [](auto& c) { c.dns_names = {"n1"}; }, "lacks the names n1.example"},
      {"an address less", [](auto& c) { c.ip_addresses.pop_back(); }, "2001:db8::1"},
      {"expired", [](auto& c) { c.not_after = kNow; }, "2026-11-20T14:00:00Z"},
  };
  for (const Row& row : kRows) {
    auto certificate = certificate_for(serving());
    row.change(certificate);
    const std::string problem = issued_problem(certificate, serving(), kNow);
    if (*row.problem == '\0') {
      EXPECT_EQ(problem, "") << row.what;
    } else {
      EXPECT_THAT(problem, HasSubstr(row.problem)) << row.what;
    }
  }
}

TEST(RenewalTimeTest, SeventyToNinetyPercentOfItsLife) {
  tls::StoredCertificate certificate;
  certificate.summary = certificate_for(serving());  // ten hours from kNow - 1 h
  const auto near = [&](double random, seconds after) {
    return std::chrono::abs(renewal_time(certificate, random) - (kNow - hours{1} + after)) <
           seconds{1};
  };
  EXPECT_TRUE(near(0.0, hours{7}));
  EXPECT_TRUE(near(0.5, hours{8}));
  EXPECT_TRUE(near(0.999999, hours{9}));
  certificate.stored_at = kNow - hours{2};
  EXPECT_TRUE(near(0.5, hours{8}));
}

// A minute of life, dated back by five.
TEST(RenewalTimeTest, LifeBeginsWhenTheCertificateCame) {
  tls::StoredCertificate certificate;
  certificate.summary.not_before = kNow - minutes{5};
  certificate.summary.not_after = kNow + seconds{60};
  certificate.stored_at = kNow;
  EXPECT_LT(std::chrono::abs(renewal_time(certificate, 0.5) - (kNow + seconds{48})), seconds{1});
  certificate.stored_at = kNow + hours{1};  // a copied file
  EXPECT_EQ(renewal_time(certificate, 0.5), kNow + seconds{60});
}

}  // namespace certificate_rules_test
}  // namespace slurmlet::credentials
