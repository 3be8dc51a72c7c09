#include <gtest/gtest.h>

#include "tls/client_identity.h"

namespace slurmlet::tls {
namespace base64_test {

struct Pair {
  std::string bytes;
  std::string text;
};

// RFC 4648 section 10, and bytes that use the whole alphabet.
class Base64 : public testing::TestWithParam<Pair> {};
INSTANTIATE_TEST_SUITE_P(Vectors, Base64,
                         testing::Values(Pair{"", ""}, Pair{"f", "Zg=="}, Pair{"fo", "Zm8="},
                                         Pair{"foo", "Zm9v"}, Pair{"foob", "Zm9vYg=="},
                                         Pair{"fooba", "Zm9vYmE="}, Pair{"foobar", "Zm9vYmFy"},
                                         Pair{std::string("\xfb\xff\xfe\x00", 4), "+//+AA=="}));

TEST_P(Base64, Encodes) { EXPECT_EQ(base64_encode(GetParam().bytes), GetParam().text); }

TEST_P(Base64, Decodes) {
  const auto bytes = base64_decode(GetParam().text);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, GetParam().bytes);
}

TEST(Base64Decode, SkipsWhiteSpace) {
  const auto bytes = base64_decode(" Zm9v\r\n\tYmE=\n");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, "fooba");
}

class Base64Refuses : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Damaged, Base64Refuses,
                         testing::Values("Z", "Zg", "Zg=", "Zm8", "Zm9v=", "Zg===", "=",
                                         "Zg==Zg==", "Zm9-", "Zm_v", "Zm9\xc3"));

TEST_P(Base64Refuses, DamagedText) {
  const auto bytes = base64_decode(GetParam());
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, Code::kInvalid);
}

}  // namespace base64_test
}  // namespace slurmlet::tls
