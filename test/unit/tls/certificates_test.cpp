#include "tls/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>

#include <array>
#include <cstdio>
#include <set>

#include "fakes/temp_tree.h"
#include "tls/pem.h"
#include "tls/test_certificates.h"

namespace slurmlet::tls {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

const std::string& key() {
  static const std::string pem = *generate_key();
  return pem;
}

const CertificateSubject kServing{.common_name = "system:node:n1",
                                  .organizations = {"system:nodes"},
                                  .dns_names = {"n1", "n1.example.org"},
                                  .ip_addresses = {"192.0.2.1", "2001:db8::1"}};

struct Ran {
  int status;
  std::string output;  // both streams
};

// The openssl command line as a reader that is not ours. $FILE is `input`.
Ran openssl(const std::string& arguments, const std::string& input) {
  fakes::TempTree tree;
  tree.file("in", input, 0600);
  const std::string command = "FILE=" + tree.path("in").string() + "; " + arguments + " 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), n);
  }
  return {::pclose(pipe), output};
}

TEST(GenerateKey, MakesAP256KeyThatNobodyHad) {
  const auto one = generate_key();
  const auto two = generate_key();
  ASSERT_TRUE(one && two);
  EXPECT_NE(*one, *two);
  const Ran ran = openssl("openssl pkey -in $FILE -noout -text -check", *one);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("Key is valid"));
  EXPECT_THAT(ran.output, HasSubstr("NIST CURVE: P-256"));
}

// kubernetes.io/kube-apiserver-client-kubelet: organizations are exactly system:nodes, the common
// name starts with system:node:, no SAN of any kind.
TEST(CertificateRequest, ForClientsHasKubernetesShape) {
  const auto request = make_certificate_request(
      key(), {.common_name = "system:node:n1", .organizations = {"system:nodes"}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(*request, StartsWith("-----BEGIN CERTIFICATE REQUEST-----\n"));
  const Ran ran =
      openssl("openssl req -in $FILE -verify -noout -text -subject -nameopt RFC2253", *request);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("verify OK"));
  EXPECT_THAT(ran.output, HasSubstr("subject=CN=system:node:n1,O=system:nodes\n"));
  EXPECT_THAT(ran.output, HasSubstr("Version: 1 (0x0)"));
  EXPECT_THAT(ran.output, HasSubstr("Signature Algorithm: ecdsa-with-SHA256"));
  EXPECT_THAT(ran.output, Not(HasSubstr("Alternative Name")));
  EXPECT_THAT(ran.output, HasSubstr("Attributes:\n            (none)\n"));
}

// kubernetes.io/kubelet-serving: the same subject, at least one DNS or IP SAN and no other kind.
TEST(CertificateRequest, ForServersHasKubernetesShape) {
  const auto request = make_certificate_request(key(), kServing);
  ASSERT_TRUE(request) << request.error().message;
  const Ran ran =
      openssl("openssl req -in $FILE -verify -noout -text -subject -nameopt RFC2253", *request);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("subject=CN=system:node:n1,O=system:nodes\n"));
  EXPECT_THAT(ran.output, HasSubstr("DNS:n1, DNS:n1.example.org, IP Address:192.0.2.1, "
                                    "IP Address:2001:DB8:0:0:0:0:0:1\n"));
}

// A Kubernetes node name is up to 253 characters, X.520's common name up to 64.
TEST(CertificateRequest, HasRoomForTheLongestNodeName) {
  const std::string name = "system:node:" + std::string(253, 'n');
  const auto request =
      make_certificate_request(key(), {.common_name = name, .organizations = {"system:nodes"}});
  ASSERT_TRUE(request) << request.error().message;
  const Ran ran = openssl("openssl req -in $FILE -noout -subject -nameopt RFC2253", *request);
  EXPECT_THAT(ran.output, HasSubstr("CN=" + name + ","));
}

struct BadSubject {
  const char* name;
  CertificateSubject subject;
  const char* words;
};
class BadSubjectTest : public testing::TestWithParam<BadSubject> {};
INSTANTIATE_TEST_SUITE_P(
    Subjects, BadSubjectTest,
    testing::Values(
        BadSubject{"NoCommonName", {.organizations = {"a"}}, "common name"},
        BadSubject{"LineEnd", {.common_name = "a\nb"}, "common name"},
        BadSubject{"NoOrganization", {.common_name = "a", .organizations = {""}}, "organization"},
        BadSubject{"EmptyDns", {.common_name = "a", .dns_names = {""}}, "DNS name"},
        BadSubject{"NonAsciiDns", {.common_name = "a", .dns_names = {"n\xc3\xb6"}}, "DNS name"},
        BadSubject{"NoAddress", {.common_name = "a", .ip_addresses = {"n1"}}, "\"n1\""},
        BadSubject{"ZonedAddress",
                   {.common_name = "a", .ip_addresses = {"fe80::1%eth0"}},
                   "fe80::1%eth0"}),
    [](const auto& test) { return test.param.name; });

TEST_P(BadSubjectTest, IsInvalid) {
  const auto now = std::chrono::system_clock::now();
  for (const auto& made : {make_certificate_request(key(), GetParam().subject),
                           make_self_signed(key(), GetParam().subject, now, now + 1h)}) {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, Code::kInvalid);
    EXPECT_THAT(made.error().message, HasSubstr(GetParam().words));
    EXPECT_THAT(made.error().message, HasSubstr(";"));
  }
}

TEST(CertificateRequest, NeedsAKey) {
  const auto request = make_certificate_request("no key", {.common_name = "a"});
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().code, Code::kInvalid);
}

TEST(SelfSigned, IsAServingCertificate) {
  const auto certificate =
      make_self_signed(key(), kServing, WallTime{1700000000s}, WallTime{2600000000s});
  ASSERT_TRUE(certificate) << certificate.error().message;
  const Ran ran = openssl(
      "openssl x509 -in $FILE -noout -text && openssl verify -purpose sslserver -CAfile $FILE "
      "-verify_hostname n1.example.org -verify_ip 2001:db8::1 $FILE",
      *certificate);
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("Version: 3 (0x2)"));
  EXPECT_THAT(ran.output, HasSubstr("CA:FALSE"));
  EXPECT_THAT(ran.output, HasSubstr("TLS Web Server Authentication\n"));
  EXPECT_THAT(ran.output, HasSubstr("Digital Signature\n"));
  EXPECT_THAT(ran.output, HasSubstr("Not Before: Nov 14 22:13:20 2023 GMT"));
  EXPECT_THAT(ran.output, HasSubstr("Not After : May 22 14:13:20 2052 GMT"));
  EXPECT_TRUE(is_pair(*certificate, key()));
}

TEST(SelfSigned, HasASerialNumberOfItsOwn) {
  std::set<std::string> serials;
  for (int i = 0; i < 4; ++i) {
    const auto certificate =
        make_self_signed(key(), {.common_name = "a"}, WallTime{0s}, WallTime{1s});
    const Ran ran = openssl("openssl x509 -in $FILE -noout -serial", *certificate);
    EXPECT_THAT(ran.output, MatchesRegex("serial=[4-7][0-9A-F]{31}\n"));
    serials.insert(ran.output);
  }
  EXPECT_EQ(serials.size(), 4U);
}

TEST(ReadCertificate, TellsWhatIsInIt) {
  const auto certificate =
      make_self_signed(key(), kServing, WallTime{1700000000s}, WallTime{2600000000s});
  const auto summary = read_certificate(*certificate, "x.pem");
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->common_name, "system:node:n1");
  EXPECT_THAT(summary->organizations, ElementsAre("system:nodes"));
  EXPECT_EQ(summary->not_before, WallTime{1700000000s});
  EXPECT_EQ(summary->not_after, WallTime{2600000000s});
  EXPECT_THAT(summary->dns_names, ElementsAre("n1", "n1.example.org"));
  EXPECT_THAT(summary->ip_addresses, ElementsAre("192.0.2.1", "2001:db8::1"));
}

TEST(ReadCertificate, PassesOverNamesOfOtherKinds) {
  const Issued made = make_self_signed(
      CertificateSpec{.common_name = "a", .names = {"URI:spiffe://x", "DNS:d", "email:a@b.c"}});
  const auto summary = read_certificate(made.certificate, "x.pem");
  ASSERT_TRUE(summary);
  EXPECT_THAT(summary->dns_names, ElementsAre("d"));
  EXPECT_THAT(summary->ip_addresses, IsEmpty());
}

TEST(ReadCertificate, NamesTheSourceOfNonsense) {
  const auto summary = read_certificate("nonsense", "x.pem");
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, Code::kInvalid);
  EXPECT_THAT(summary.error().message, StartsWith("x.pem: "));
}

TEST(IsPair, ComparesKeyAndFirstCertificate) {
  const Issued one = make_self_signed(CertificateSpec{.common_name = "one"});
  const Issued two = make_self_signed(CertificateSpec{.common_name = "two"});
  EXPECT_TRUE(is_pair(one.certificate, one.key));
  EXPECT_TRUE(is_pair(one.certificate + two.certificate, one.key));
  EXPECT_FALSE(is_pair(two.certificate + one.certificate, one.key));
  EXPECT_FALSE(is_pair(one.certificate, two.key));
  EXPECT_FALSE(is_pair("", one.key));
  EXPECT_FALSE(is_pair(one.certificate, ""));
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

TEST(PublicKeyDigest, IsThatOfTheSubjectPublicKeyInfo) {
  const auto digest = public_key_digest(key());
  ASSERT_TRUE(digest);
  const Ran ran =
      openssl("openssl pkey -in $FILE -pubout -outform DER | openssl dgst -sha256 -r", key());
  EXPECT_EQ(ran.output.substr(0, 64), *digest);
  const auto none = public_key_digest("nonsense");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalid);
}

TEST(CertificatesWithPins, AreThoseOfKubeadm) {
  const Issued one = make_self_signed(CertificateSpec{.common_name = "one"});
  const Issued two = make_self_signed(CertificateSpec{.common_name = "two"});
  const auto found = certificates_with_pins(one.certificate + two.certificate, "ca.crt");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 2U);
  // As kubeadm's documentation computes it.
  const Ran ran = openssl(
      "openssl x509 -pubkey -noout -in $FILE | openssl pkey -pubin -outform der | "
      "openssl dgst -sha256 -r",
      one.certificate);
  EXPECT_EQ(found->front().pin, "sha256:" + ran.output.substr(0, 64));
  EXPECT_EQ(found->front().pem, one.certificate);
  EXPECT_EQ(found->back().pin, "sha256:" + *public_key_digest(two.key));
  EXPECT_EQ(found->back().pem, two.certificate);
  const auto none = certificates_with_pins("nonsense", "ca.crt");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, StartsWith("ca.crt: "));
}

TEST(Sha256, OfKnownBytes) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(base64_encode(sha256("abc")), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  EXPECT_EQ(sha256("").size(), 32U);
}

TEST(ReadCertificate, OneForEverHasNotExpired) {
  // notAfter is in the year 9966: openssl req -x509 -days 2900000.
  const std::string pem =
      "-----BEGIN CERTIFICATE-----\n"
      "MIIBejCCASGgAwIBAgIUD1PlbUDb5dOY+/iJpwFCSKUO+HAwCgYIKoZIzj0EAwIw\n"
      "EjEQMA4GA1UEAwwHZm9yZXZlcjAgFw0yNjExMjExMzM0MjVaGA85OTY2MTAyNzEz\n"
      "MzQyNVowEjEQMA4GA1UEAwwHZm9yZXZlcjBZMBMGByqGSM49AgEGCCqGSM49AwEH\n"
      "A0IABIsEVZZRbmbcmA1XRhvN+59Q5fqxK4iq9k5aaZCY/CR4/cj2M31JgcVHAJ95\n"
      "D+BBnUdUcEHgEyXvTD054NytzIqjUzBRMB0GA1UdDgQWBBRdtj1sYA+I0K88liux\n"
      "LM2GSbjb9jAfBgNVHSMEGDAWgBRdtj1sYA+I0K88liuxLM2GSbjb9jAPBgNVHRMB\n"
      "Af8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIAjL11zjch+Zmd0evAAwYr4wfCVg\n"
      "hpyLqBI8j+85ahD7AiBimfjH26WRocMg/EFRFj6y5k/HqBTGKARZkFvykIHsuA==\n"
      "-----END CERTIFICATE-----\n";
  const auto summary = read_certificate(pem, "forever");
  ASSERT_TRUE(summary);
  EXPECT_GT(summary->not_after, WallTime{9000000000s});
  EXPECT_GT(summary->not_before, WallTime{1700000000s});
}

}  // namespace
}  // namespace slurmlet::tls
