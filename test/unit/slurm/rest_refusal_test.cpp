// What goes wrong between slurmlet and slurmrestd, and how it is told.

#include "rest_dump_fixture.h"

namespace slurmlet::slurm {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

struct RefusalCase {
  const char* url;
  const char* token;
  const char* words;
};
class RestRefusal : public RestDumpTest, public testing::WithParamInterface<RefusalCase> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, RestRefusal,
    testing::Values(
        RefusalCase{kSocket, "", "serves only root and its own user"},
        RefusalCase{kSocket, "t", "rejects the token in /etc/jwt for user root (HTTP 401)"},
        RefusalCase{"https://h:1", "", "requires a token (HTTP 401), but none is configured"},
        RefusalCase{"https://h:1", "t", "AuthAltTypes=auth/jwt"}));

TEST_P(RestRefusal, OfUsNamesItsCure) {
  make_dump(GetParam().url);
  token_ = {GetParam().token, "/etc/jwt", {}};
  ASSERT_TRUE(start());
  find_version(38);
  answer_as_captured("22.05.8/rest-otheruser-401.out");
  EXPECT_THAT(error_of(dump()), HasSubstr(GetParam().words));
}

struct TransportCase {
  const char* url;
  Error error;
  std::string detail;
};
class RestTransport : public RestDumpTest, public testing::WithParamInterface<TransportCase> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, RestTransport,
    testing::Values(
        TransportCase{
            kSocket, {Code::kNotFound, "no such file or directory"}, "the socket does not exist"},
        TransportCase{kSocket,
                      {Code::kDenied, "permission denied"},
                      "permission denied on the socket; allow slurmlet's user to connect to it "
                      "(mode and owner of the socket and its directory)"},
        TransportCase{kSocket, {Code::kUnavailable, "connection refused"}, "connection refused"},
        TransportCase{
            "https://h:1", {Code::kUnavailable, "connection refused"}, "connection refused"},
        TransportCase{"https://h:1",
                      {Code::kUnavailable, "Could not resolve host: h"},
                      "Could not resolve host: h"},
        TransportCase{"https://h:1",
                      {Code::kUnavailable,
                       "Failed to connect to h port 1 after 12 ms: Couldn't connect to server"},
                      "Failed to connect to h port 1"},
        TransportCase{"https://h:1",
                      {Code::kUnavailable, "transfer closed with 733 bytes remaining to read"},
                      "it closed the connection in the middle of its answer"},
        TransportCase{
            "https://h:1",
            {Code::kUnavailable, "error:0A00010B:SSL routines::wrong version number"},
            "error:0A00010B:SSL routines::wrong version number; it does not use TLS on this port: "
            "put a TLS proxy in front of slurmrestd and set slurmRestURL to the proxy"},
        TransportCase{
            "https://h:1",
            {Code::kDenied,
             "certificate verify failed: self-signed certificate; put the CA that "
             "signed the server's certificate into the CA bundle"},
            "certificate verify failed: self-signed certificate; put the CA that signed "
            "the server's certificate into the CA bundle (slurmRestCAFile names the CA)"}));

TEST_P(RestTransport, FailuresTellCauseAndCure) {
  make_dump(GetParam().url);
  ASSERT_TRUE(start());
  Error error = GetParam().error;
  error.request = RequestFailure{RequestFailure::Stage::kConnection, 0, error.message};
  http_->stream().break_off(error.with_prefix("GET x" + http_->stream_requests.back().path));
  EXPECT_THAT(error_of(dump()),
              EndsWith(std::string{"slurmrestd "} + GetParam().url + ": " + GetParam().detail));
  EXPECT_FALSE(dump_->running());
}

TEST_F(RestDumpTest, AConnectionThatEndsWithoutAnAnswerIsReported) {
  make_dump();
  ASSERT_TRUE(start());
  http_->stream().end();
  EXPECT_THAT(error_of(dump()), HasSubstr("without an answer"));
}

TEST_F(RestDumpTest, AProxysPageIsNoList) {
  make_dump();
  ASSERT_TRUE(start());
  answer(200, "<html><body>Welcome</body></html>");
  EXPECT_FALSE(error_of(dump()).empty());
}

}  // namespace
}  // namespace slurmlet::slurm
