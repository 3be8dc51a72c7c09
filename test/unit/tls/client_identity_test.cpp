#include "tls/client_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "tls/certificates.h"
#include "tls/openssl_ptr.h"
#include "tls/test_certificates.h"

namespace slurmlet::tls {
namespace {

using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

struct Pki {
  Issued ca = make_self_signed({.common_name = "kubernetes", .is_ca = true});
  Issued client = issue(ca, {.common_name = "system:node:n1",
                             .organizations = {"system:nodes", "site"},
                             .not_before = WallTime{1700000000s},
                             .not_after = WallTime{4000000000s}});
};

const Pki& pki() {
  static const Pki instance;
  return instance;
}

PemSources sources() {
  return {.ca = pki().ca.certificate,
          .certificate = pki().client.certificate,
          .key = pki().client.key,
          .ca_name = "/etc/ca.crt",
          .certificate_name = "/etc/node.crt",
          .key_name = "/etc/node.key"};
}

TEST(ClientIdentity, SummarizesItsCertificate) {
  const auto identity = ClientIdentity::make(sources());
  ASSERT_TRUE(identity) << identity.error().message;
  const auto summary = (*identity)->certificate();
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->common_name, "system:node:n1");
  EXPECT_THAT(summary->organizations, testing::ElementsAre("system:nodes", "site"));
  EXPECT_EQ(summary->not_before, WallTime{1700000000s});
  EXPECT_EQ(summary->not_after, WallTime{4000000000s});
  EXPECT_FALSE(summary->is_ca);
  const auto ca = read_certificate(pki().ca.certificate, "ca");
  ASSERT_TRUE(ca);
  EXPECT_TRUE(ca->is_ca);
}

TEST(ClientIdentity, WorksWithoutClientCertificate) {
  PemSources pem = sources();
  pem.certificate.reset();
  pem.key.reset();
  const auto identity = ClientIdentity::make(pem);
  ASSERT_TRUE(identity);
  EXPECT_FALSE((*identity)->certificate());
}

TEST(ClientIdentity, TakesCertificateAndKeyFromOneFile) {
  PemSources pem = sources();
  pem.certificate = pem.key = pki().client.certificate + pki().client.key;
  EXPECT_TRUE(ClientIdentity::make(pem));
}

TEST(ClientIdentity, UsesTheSystemStoreWhenNoCaIsGiven) {
  PemSources pem = sources();
  pem.ca.reset();
  EXPECT_TRUE(ClientIdentity::make(pem));
}

// OpenSSL alone would pass over the first certificate, which then is not trusted.
TEST(ClientIdentity, PassesOverAByteOrderMark) {
  PemSources pem = sources();
  const std::string mark = "\xEF\xBB\xBF";
  pem.ca = mark + *pem.ca;
  pem.certificate = mark + *pem.certificate;
  pem.key = mark + *pem.key;
  const auto identity = ClientIdentity::make(pem);
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ((*identity)->certificate()->common_name, "system:node:n1");
}

TEST(ClientIdentity, ConfiguresAContext) {
  const auto intermediate = issue(pki().ca, {.common_name = "intermediate", .is_ca = true});
  const auto leaf = issue(intermediate, {.common_name = "leaf"});
  PemSources pem = sources();
  pem.certificate = leaf.certificate + intermediate.certificate;
  pem.key = leaf.key;
  const auto identity = ClientIdentity::make(pem);
  ASSERT_TRUE(identity) << identity.error().message;
  const ContextPtr context{SSL_CTX_new(TLS_client_method())};
  ASSERT_TRUE((*identity)->apply_to(context.get()));
  EXPECT_EQ(SSL_CTX_get_min_proto_version(context.get()), TLS1_2_VERSION);
  EXPECT_EQ(SSL_CTX_get_verify_mode(context.get()), SSL_VERIFY_PEER);
  EXPECT_EQ(SSL_CTX_get_session_cache_mode(context.get()), SSL_SESS_CACHE_OFF);
  EXPECT_NE(SSL_CTX_get_mode(context.get()) & SSL_MODE_RELEASE_BUFFERS, 0);
  EXPECT_EQ(SSL_CTX_check_private_key(context.get()), 1);
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context.get(), &chain);
  EXPECT_EQ(sk_X509_num(chain), 1);
  X509_STORE* trust = nullptr;
  SSL_CTX_get0_verify_cert_store(context.get(), &trust);
  ASSERT_NE(trust, nullptr);
  EXPECT_EQ(sk_X509_OBJECT_num(X509_STORE_get0_objects(trust)), 1);
}

TEST(ClientIdentity, VerifiesServers) {
  EXPECT_TRUE((*ClientIdentity::make(sources()))->verifies_server());
}

TEST(ClientIdentity, UntrustingBelievesAnybodyAndShowsNothing) {
  const auto identity = ClientIdentity::make_untrusting();
  ASSERT_TRUE(identity);
  EXPECT_FALSE((*identity)->verifies_server());
  EXPECT_FALSE((*identity)->certificate());
  EXPECT_FALSE((*identity)->apply_to(nullptr));
  const ContextPtr context{SSL_CTX_new(TLS_client_method())};
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  ASSERT_TRUE((*identity)->apply_to(context.get()));
  EXPECT_EQ(SSL_CTX_get_verify_mode(context.get()), SSL_VERIFY_NONE);
  EXPECT_EQ(SSL_CTX_get_min_proto_version(context.get()), TLS1_2_VERSION);
  EXPECT_EQ(SSL_CTX_get0_certificate(context.get()), nullptr);
}

TEST(ClientIdentity, RefusesANullContext) {
  EXPECT_FALSE((*ClientIdentity::make(sources()))->apply_to(nullptr));
}

struct BadCase {
  const char* name;
  void (*damage)(PemSources&);
  const char* source;  // what the message starts with
  const char* words;
};

class ClientIdentityRefuses : public testing::TestWithParam<BadCase> {};
INSTANTIATE_TEST_SUITE_P(
    Sources, ClientIdentityRefuses,
    testing::Values(
        BadCase{"CaWithoutPem", [](PemSources& pem) { pem.ca = "hello"; },
                "/etc/ca.crt: ", "no PEM certificate"},
        BadCase{"CaEmpty", [](PemSources& pem) { pem.ca = ""; },
                "/etc/ca.crt: ", "no PEM certificate"},
        BadCase{"CertificateAndKeyEmpty", [](PemSources& pem) { pem.certificate = pem.key = ""; },
                "/etc/node.crt: ", "no PEM certificate"},
        BadCase{"KeyEmpty", [](PemSources& pem) { pem.key = ""; },
                "/etc/node.key: ", "no PEM private key"},
        BadCase{"CaUtf16", [](PemSources& pem) { pem.ca = std::string("\xFF\xFE-\0-\0", 6); },
                "/etc/ca.crt: ", "iconv -f UTF-16 -t UTF-8"},
        BadCase{"CaBlank", [](PemSources& pem) { pem.ca = "\n"; },
                "/etc/ca.crt: ", "no PEM certificate"},
        BadCase{"CaSecondDamaged",
                [](PemSources& pem) {
                  *pem.ca += "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
                },
                "/etc/ca.crt: ", "certificate 2 is damaged"},
        BadCase{"CaCutShort", [](PemSources& pem) { pem.ca->resize(pem.ca->size() / 2); },
                "/etc/ca.crt: ", "certificate 1 is damaged"},
        BadCase{"CertificateIsAKey", [](PemSources& pem) { pem.certificate = pem.key; },
                "/etc/node.crt: ", "no PEM certificate"},
        BadCase{"KeyMissing", [](PemSources& pem) { pem.key.reset(); },
                "/etc/node.crt: ", "without its private key"},
        BadCase{"CertificateMissing", [](PemSources& pem) { pem.certificate.reset(); },
                "/etc/node.key: ", "without its certificate"},
        BadCase{"KeyIsACertificate", [](PemSources& pem) { pem.key = pem.certificate; },
                "/etc/node.key: ", "no PEM private key"},
        BadCase{"KeyDamaged", [](PemSources& pem) { pem.key->erase(60, 8); },
                "/etc/node.key: ", "cannot be read"},
        BadCase{"KeyEncrypted", [](PemSources& pem) { pem.key = encrypt_key(*pem.key); },
                "/etc/node.key: ", "encrypted"},
        BadCase{"KeyOfAnother", [](PemSources& pem) { pem.key = pki().ca.key; },
                "/etc/node.key: ", "does not belong to the first certificate of /etc/node.crt"},
        BadCase{"KeyTooShort",
                [](PemSources& pem) {
                  const Issued weak = make_weak_rsa();
                  pem.certificate = weak.certificate;
                  pem.key = weak.key;
                },
                "/etc/node.crt: ", "key too small"}),
    [](const auto& test) { return test.param.name; });

TEST_P(ClientIdentityRefuses, NamingSourceAndCureButNoKey) {
  PemSources pem = sources();
  GetParam().damage(pem);
  const auto identity = ClientIdentity::make(pem);
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().code, Code::kInvalid);
  EXPECT_THAT(identity.error().message, testing::StartsWith(GetParam().source));
  EXPECT_THAT(identity.error().message, HasSubstr(GetParam().words));
  EXPECT_THAT(identity.error().message, HasSubstr(";"));  // the cure
  const std::string key_line = pki().client.key.substr(28, 40);
  EXPECT_THAT(identity.error().message, Not(HasSubstr(key_line)));
  EXPECT_EQ(ERR_peek_error(), 0UL);  // nothing left to confuse the next user of OpenSSL
}

}  // namespace
}  // namespace slurmlet::tls
