// What goes wrong between slurmlet and slurmrestd, and how it is told.

#include "rest_source_fixture.h"

namespace slurmlet::slurm {
namespace {

using node::SlurmFailure;
using testing::HasSubstr;

struct RefusalCase {
  const char* url;
  const char* token;
  SlurmFailure cause;
  const char* words;
};
class RestRefusal : public RestSourceTest, public testing::WithParamInterface<RefusalCase> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, RestRefusal,
    testing::Values(RefusalCase{kSocket, "", SlurmFailure::kRestUnavailable,
                                "serves only root and its own user"},
                    RefusalCase{kSocket, "t", SlurmFailure::kTokenRefused,
                                "rejects the token in /etc/jwt for user root (HTTP 401)"},
                    RefusalCase{"https://h:1", "", SlurmFailure::kTokenRefused,
                                "requires a token (HTTP 401), but none is configured"},
                    RefusalCase{"https://h:1", "t", SlurmFailure::kTokenRefused,
                                "AuthAltTypes=auth/jwt"}));

TEST_P(RestRefusal, OfUsNamesItsCure) {
  make(GetParam().url);
  token_ = {GetParam().token, "/etc/jwt", {}};
  ASSERT_FALSE(ask());
  find(38);
  answer_as_captured("22.05.8/rest-otheruser-401.out");
  const auto result = poll();
  EXPECT_EQ(cause_of(result), GetParam().cause);
  EXPECT_THAT(result->failure->detail, HasSubstr(GetParam().words));
}

struct TransportCase {
  const char* url;
  Error error;
  SlurmFailure cause;
  std::string detail;
};
class RestTransport : public RestSourceTest, public testing::WithParamInterface<TransportCase> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, RestTransport,
    testing::Values(
        TransportCase{kSocket,
                      {Code::kNotFound, "no such file or directory"},
                      SlurmFailure::kRestUnavailable,
                      "the socket does not exist"},
        TransportCase{kSocket,
                      {Code::kDenied, "permission denied"},
                      SlurmFailure::kRestUnavailable,
                      "permission denied on the socket; allow slurmlet's user to connect to it "
                      "(mode and owner of the socket and its directory)"},
        TransportCase{kSocket,
                      {Code::kUnavailable, "connection refused"},
                      SlurmFailure::kRestUnavailable,
                      "connection refused"},
        TransportCase{"https://h:1",
                      {Code::kUnavailable, "connection refused"},
                      SlurmFailure::kRestUnavailable,
                      "connection refused"},
        TransportCase{"https://h:1",
                      {Code::kUnavailable, "Could not resolve host: h"},
                      SlurmFailure::kRestUnavailable,
                      "Could not resolve host: h"},
        TransportCase{"https://h:1",
                      {Code::kUnavailable,
                       "Failed to connect to h port 1 after 12 ms: Couldn't connect to server"},
                      SlurmFailure::kRestUnavailable,
                      "Failed to connect to h port 1"},
        TransportCase{"https://h:1",
                      {Code::kUnavailable, "transfer closed with 733 bytes remaining to read"},
                      SlurmFailure::kRestUnavailable,
                      "it closed the connection in the middle of its answer"},
        TransportCase{
            "https://h:1",
            {Code::kUnavailable, "error:0A00010B:SSL routines::wrong version number"},
            SlurmFailure::kRestUnavailable,
            "error:0A00010B:SSL routines::wrong version number; it does not use TLS on this port: "
            "put a TLS proxy in front of slurmrestd and set slurm.restURL to the proxy"},
        TransportCase{"https://h:1",
                      {Code::kDenied,
                       "certificate verify failed: self-signed certificate; put the CA that "
                       "signed the server's certificate into the CA bundle"},
                      SlurmFailure::kRestUnavailable,
                      "certificate verify failed: self-signed certificate; put the CA that signed "
                      "the server's certificate into the CA bundle (slurm.restCAFile names the "
                      "CA)"}));

TEST_P(RestTransport, FailuresTellCauseAndCure) {
  make(GetParam().url);
  ASSERT_FALSE(ask());
  Error error = GetParam().error;
  error.request = RequestFailure{RequestFailure::Stage::kConnection, 0, error.message};
  http_->stream().break_off(error.with_prefix("GET x" + http_->stream_requests.back().path));
  const auto result = poll();
  EXPECT_EQ(cause_of(result), GetParam().cause);
  EXPECT_EQ(result->failure->detail,
            std::string{"slurmrestd "} + GetParam().url + ": " + GetParam().detail);
  EXPECT_FALSE(source_->busy());
}

TEST_F(RestSourceTest, ATimeoutOfTheTransportIsOne) {
  make();
  ASSERT_FALSE(ask());
  http_->stream().break_off({Code::kTimeout, "GET x: no answer within 15000 ms"});
  EXPECT_EQ(cause_of(poll()), SlurmFailure::kTimeout);
}

TEST_F(RestSourceTest, AConnectionThatEndsWithoutAnAnswerIsTold) {
  make();
  ASSERT_FALSE(ask());
  http_->stream().end();
  const auto result = poll();
  EXPECT_EQ(cause_of(result), SlurmFailure::kRestUnavailable);
  EXPECT_THAT(result->failure->detail, HasSubstr("without an answer"));
}

TEST_F(RestSourceTest, AFloodIsCutOff) {
  make();
  ASSERT_FALSE(ask());
  http_->stream().status = 200;
  http_->stream().feed(std::string((1U << 20) + 1, ' '));
  EXPECT_EQ(cause_of(poll()), SlurmFailure::kGarbage);
  EXPECT_TRUE(http_->stream().closed);
}

TEST_F(RestSourceTest, AnotherNodesRecordAndAProxysPageAreGarbage) {
  make();
  ASSERT_FALSE(ask("other"));
  find(44);
  answer_as_captured("25.11/mixed-gpu.rest.out");
  EXPECT_EQ(cause_of(poll()), SlurmFailure::kGarbage);
  ASSERT_FALSE(ask("other"));
  answer(200, "<html><body>Welcome</body></html>");
  EXPECT_EQ(cause_of(poll()), SlurmFailure::kGarbage);
}

}  // namespace
}  // namespace slurmlet::slurm
