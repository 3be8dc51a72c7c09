#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tls/certificates.h"

namespace slurmlet::tls {
namespace {

using ::testing::HasSubstr;

TEST(ReadCertificateRequestTest, TellsWhomItNames) {
  const auto key = generate_key();
  ASSERT_TRUE(key);
  for (const CertificateSubject& subject :
       {CertificateSubject{"system:node:n1", {"system:nodes"}, {}, {}},
        CertificateSubject{"system:node:n1", {"system:nodes"}, {"n1", "n1.site"}, {"192.0.2.1"}},
        CertificateSubject{"n1", {}, {}, {"2001:db8::1"}}}) {
    const auto read = read_certificate_request(*make_certificate_request(*key, subject));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, subject);
  }
}

// Made by `openssl req`; a signer may read them otherwise.
TEST(ReadCertificateRequestTest, RefusesWhatCanBeReadInTwoWays) {
  const struct {
    const char* what;
    const char* pem;
    const char* why;
  } table[] = {
      {"a challenge password beside the extensions",
       "-----BEGIN CERTIFICATE REQUEST-----\n"
       "MIIBIjCByQIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5\n"
       "c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEHdFIGJtx2TtZ\n"
       "YWPXcWl87AYpsoxx9cMik9dPBQX8KVRegP2SdySra4i4/sIixTIzYoNROUqWLAdA\n"
       "7T0NojzTyKA3MBUGCSqGSIb3DQEJBzEIDAZzZWNyZXQwHgYJKoZIhvcNAQkOMREw\n"
       "DzANBgNVHREEBjAEggJuMTAKBggqhkjOPQQDAgNIADBFAiEA/X+P6TkONAqd1RK7\n"
       "iCJkcb3bK9dfQTYFIgqOUo2PEosCIFjokB8cIano+Ejz8aVW4ZR0J5kboAw6dTuB\n"
       "w8goRZcG\n"
       "-----END CERTIFICATE REQUEST-----\n",
       "attributes"},
      {"a URI among the names",
       "-----BEGIN CERTIFICATE REQUEST-----\n"
       "MIIBGTCBwAIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5\n"
       "c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEHdFIGJtx2TtZ\n"
       "YWPXcWl87AYpsoxx9cMik9dPBQX8KVRegP2SdySra4i4/sIixTIzYoNROUqWLAdA\n"
       "7T0NojzTyKAuMCwGCSqGSIb3DQEJDjEfMB0wGwYDVR0RBBQwEoICbjGGDHNwaWZm\n"
       "ZTovL2EvYjAKBggqhkjOPQQDAgNIADBFAiAYSMFJ3CfnmcoZAVBYsGqi777wPCqH\n"
       "qPoWLAPy2TCwjAIhAK/AHEVdIfXroMieDQGp17AD58We1Uf3pYRQfkPRKURr\n"
       "-----END CERTIFICATE REQUEST-----\n",
       "neither DNS names nor IP addresses"},
      {"two common names",
       "-----BEGIN CERTIFICATE REQUEST-----\n"
       "MIIBAzCBqwIBADBJMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5\n"
       "c3RlbTpub2RlOm4xMRcwFQYDVQQDDA5zeXN0ZW06bm9kZTpuMjBZMBMGByqGSM49\n"
       "AgEGCCqGSM49AwEHA0IABB3RSBibcdk7WWFj13FpfOwGKbKMcfXDIpPXTwUF/ClU\n"
       "XoD9knckq2uIuP7CIsUyM2KDUTlKliwHQO09DaI808igADAKBggqhkjOPQQDAgNH\n"
       "ADBEAiAeF8jNvAs4Bh4QTqwgq67B3twzR3EdluLHuSEq/a6MtwIgNn32BSkYxsDF\n"
       "qKsJYsn8WLVE1mek4OixKCx1Nxqb7wg=\n"
       "-----END CERTIFICATE REQUEST-----\n",
       "one common name"},
      {"an organizational unit",
       "-----BEGIN CERTIFICATE REQUEST-----\n"
       "MIH3MIGeAgEAMDwxFTATBgNVBAoMDHN5c3RlbTpub2RlczEKMAgGA1UECwwBeDEX\n"
       "MBUGA1UEAwwOc3lzdGVtOm5vZGU6bjEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\n"
       "AAQd0UgYm3HZO1lhY9dxaXzsBimyjHH1wyKT108FBfwpVF6A/ZJ3JKtriLj+wiLF\n"
       "MjNig1E5SpYsB0DtPQ2iPNPIoAAwCgYIKoZIzj0EAwIDSAAwRQIgJRk2avLqqm7+\n"
       "4cc/2MQRssMC8VABn3E1XK/E2qOSa8wCIQD0E6M+HbJx6y+TUW5no7vWp8E3Npp3\n"
       "BQ7qE0caLUWENw==\n"
       "-----END CERTIFICATE REQUEST-----\n",
       "one common name"},
      {"nothing", "", "not a PEM certificate request"},
      {"broken base64",
       "-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n",
       "not a PEM certificate request"},
  };
  for (const auto& row : table) {
    SCOPED_TRACE(row.what);
    const auto read = read_certificate_request(row.pem);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr(row.why));
  }
}

// OpenSSL takes the line "-" for the end of the first block; Go does not read that block, but the
// next.
TEST(ReadCertificateRequestTest, RefusesASecondRequestBehindTheFirst) {
  const auto key = generate_key();
  ASSERT_TRUE(key);
  const std::string good =
      *make_certificate_request(*key, {"system:node:n1", {"system:nodes"}, {}, {}});
  const std::string evil =
      *make_certificate_request(*key, {"system:node:n2", {"system:nodes"}, {}, {}});
  const std::string kEnd = "-----END";
  std::string broken = good;
  broken.insert(broken.find(kEnd), "-\n");
  for (const std::string& text : {broken + evil, good + evil, "Comment\n" + good, broken}) {
    const auto read = read_certificate_request(text);
    ASSERT_FALSE(read) << text;
  }
  EXPECT_TRUE(read_certificate_request("\n" + good + "\n\n"));
}

}  // namespace
}  // namespace slurmlet::tls
