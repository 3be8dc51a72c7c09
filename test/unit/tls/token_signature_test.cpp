#include <gtest/gtest.h>
#include <openssl/err.h>

#include "tls/certificates.h"

namespace slurmlet::tls {
namespace {

// Signatures made with Python's hmac and base64 modules, which agree with what kubeadm's
// bootstrap signer writes.
constexpr const char* kPayload = "apiVersion: v1\nkind: Config\n";
const std::string kSecret = "0123456789abcdef";
const std::string kGood =
    "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..vH_kT4yiol-nrAWgjfCYqvum5wsKETXe0S7OOp1VgnE";

TEST(TokenSignature, BelievesTheBootstrapSigner) {
  EXPECT_TRUE(is_signed_with_token(kGood, kPayload, "abcdef", kSecret));
}

TEST(TokenSignature, LetsTheHeaderHaveAnotherOrderAndFields) {
  EXPECT_TRUE(
      is_signed_with_token("eyJraWQiOiJhYmNkZWYiLCJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.."
                           "Qoov8rBNcKI6bIWtNuEs6sfxGJAxuLMF_OlRFdpEMrM",
                           kPayload, "abcdef", kSecret));
}

TEST(TokenSignature, IsOverThePayloadByThisKeyOfThisName) {
  EXPECT_FALSE(is_signed_with_token(kGood, std::string{kPayload} + " ", "abcdef", kSecret));
  EXPECT_FALSE(is_signed_with_token(kGood, "", "abcdef", kSecret));
  EXPECT_FALSE(is_signed_with_token(kGood, kPayload, "abcdeg", kSecret));
  EXPECT_FALSE(is_signed_with_token(kGood, kPayload, "abcdef", "0123456789abcdeg"));
  EXPECT_FALSE(is_signed_with_token(kGood, kPayload, "abcdef", ""));
}

// With the right signature over what is wrong.
struct Unfit {
  const char* name;
  const char* jws;
};
class UnfitHeader : public testing::TestWithParam<Unfit> {};
INSTANTIATE_TEST_SUITE_P(
    Headers, UnfitHeader,
    testing::Values(
        Unfit{"OtherKeyId",
              "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZyJ9.."
              "nOjAwcxwExtKWDCiGYPSOPQ_2j8S_4n0IITigiIO6og"},
        Unfit{"AlgorithmNone",
              "eyJhbGciOiJub25lIiwia2lkIjoiYWJjZGVmIn0.."
              "aFlKc6UmLsH6TvYT0dxQrxUL6oWXHfuG4o5N9eIHPdA"},
        Unfit{"AlgorithmHs512",
              "eyJhbGciOiJIUzUxMiIsImtpZCI6ImFiY2RlZiJ9.."
              "uxTVcPfIcNekk18r2RBwf99UvXWIyinergAvz3--BRs"},
        Unfit{"CriticalExtension",
              "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiIsImNyaXQiOlsiYjY0Il0sImI2NCI6ZmFsc2V9.."
              "zxX5TlHgLvoJCBOvxYwP5AKDdEOrENQaOJzyR0p2iZU"},
        Unfit{"NoKeyId", "eyJhbGciOiJIUzI1NiJ9..Du5u2Z1sUE5f2WOj7eBXhP4RdvZqqkvbYZ-ygxhVis4"},
        Unfit{"Array", "W10..3DGEml96DBi8s9TxcQjECc97Z7hAOdb-a_nknq9qyIM"},
        Unfit{"NumberAsKeyId",
              "eyJhbGciOiJIUzI1NiIsImtpZCI6MX0..Gb2NjisHLQXUgs4wB1i2aiZFRt3IZdhJjwsi-H_QHa0"},
        Unfit{"JsonCutShort",
              "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiI.."
              "nF1cLkWlkWdCFohYhDtlINTVvXZWUKtSKIAwVm-1U3Y"}),
    [](const auto& test) { return test.param.name; });

TEST_P(UnfitHeader, IsNotBelieved) {
  EXPECT_FALSE(is_signed_with_token(GetParam().jws, kPayload, "abcdef", kSecret));
}

TEST(TokenSignature, HasTheDetachedFormExactly) {
  const std::string header = kGood.substr(0, kGood.find(".."));
  const std::string signature = kGood.substr(kGood.find("..") + 2);
  for (const std::string& jws :
       {std::string{}, std::string{".."}, header, header + "." + signature, header + "..",
        ".." + signature, header + "..." + signature, kGood + ".", kGood + "=", kGood + "\n",
        " " + kGood, kGood + "foo", kGood.substr(0, kGood.size() - 1),
        // The payload in the middle, as an attached JWS has it.
        header + ".YXBpVmVyc2lvbjogdjEKa2luZDogQ29uZmlnCg." + signature,
        // The standard alphabet instead of the URL's.
        header + "..vH/kT4yiol+nrAWgjfCYqvum5wsKETXe0S7OOp1VgnE",
        std::string(1U << 20U, 'A') + ".." + signature}) {
    EXPECT_FALSE(is_signed_with_token(jws, kPayload, "abcdef", kSecret)) << jws.substr(0, 200);
  }
  EXPECT_EQ(ERR_peek_error(), 0UL);
}

}  // namespace
}  // namespace slurmlet::tls
