#include <gtest/gtest.h>

#include "tls/certificates.h"

namespace slurmlet::tls {
namespace {

TEST(RequestPublicKeyDigestTest, IsThatOfTheKey) {
  const auto key = generate_key();
  const auto other = generate_key();
  ASSERT_TRUE(key && other);
  const auto request = make_certificate_request(*key, {"system:node:n1", {"system:nodes"}, {}, {}});
  ASSERT_TRUE(request);
  const auto digest = request_public_key_digest(*request);
  ASSERT_TRUE(digest) << digest.error().message;
  EXPECT_EQ(digest->size(), 64U);
  EXPECT_EQ(*digest, *public_key_digest(*key));
  EXPECT_NE(*digest, *public_key_digest(*other));
}

TEST(RequestPublicKeyDigestTest, RefusesWhatIsNoRequest) {
  for (const char* text :
       {"", "garbage",
        "-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n"}) {
    const auto digest = request_public_key_digest(text);
    ASSERT_FALSE(digest) << text;
    EXPECT_EQ(digest.error().code, Code::kInvalid);
  }
}

}  // namespace
}  // namespace slurmlet::tls
