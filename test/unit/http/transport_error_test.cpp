#include "http/transport_error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace slurmlet::http {
namespace {

using Stage = RequestFailure::Stage;

struct Case {
  TransportFailure failure;
  Code code;
  const char* message;
  Stage stage = Stage::kConnection;
};
class TransportErrorTable : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Codes, TransportErrorTable,
    testing::Values(
        Case{{CURLE_COULDNT_CONNECT, ECONNREFUSED, "Failed to connect"},
             Code::kUnavailable,
             "GET /x: connection refused"},
        Case{{CURLE_COULDNT_CONNECT, 0, "Failed to connect"},
             Code::kUnavailable,
             "GET /x: Failed to connect"},
        Case{{CURLE_COULDNT_RESOLVE_HOST, 0, "Could not resolve host: api"},
             Code::kUnavailable,
             "GET /x: Could not resolve host: api",
             Stage::kName},
        Case{
            {CURLE_PEER_FAILED_VERIFICATION, 0, "SSL certificate problem: certificate has expired"},
            Code::kDenied,
            "GET /x: certificate verify failed: certificate has expired; renew the server's "
            "certificate, or correct this machine's clock if it is ahead",
            Stage::kServerExpired},
        Case{{CURLE_PEER_FAILED_VERIFICATION, 0,
              "SSL certificate problem: certificate is not yet valid"},
             Code::kDenied,
             "GET /x: certificate verify failed: certificate is not yet valid; correct this "
             "machine's clock if it is behind, else the server's certificate",
             Stage::kServerNotYetValid},
        Case{{CURLE_PEER_FAILED_VERIFICATION, 0,
              "SSL: no alternative certificate subject name matches target host name 'h'"},
             Code::kDenied,
             "GET /x: certificate verify failed: no alternative certificate subject name matches "
             "target host name 'h'; use a name or an address that the server's certificate "
             "contains, or add this one to the certificate",
             Stage::kServerName},
        Case{{CURLE_PEER_FAILED_VERIFICATION, 0,
              "SSL certificate problem: self-signed certificate in certificate chain"},
             Code::kDenied,
             "GET /x: certificate verify failed: self-signed certificate in certificate chain; put "
             "the CA that signed the server's certificate into the CA bundle",
             Stage::kServerIssuer},
        Case{{CURLE_PEER_FAILED_VERIFICATION, 0,
              "SSL certificate problem: EE certificate key too weak"},
             Code::kDenied,
             "GET /x: certificate verify failed: EE certificate key too weak; check the server's "
             "certificate and the CA bundle",
             Stage::kTls},
        Case{{CURLE_RECV_ERROR, 0,
              "OpenSSL SSL_read: error:0A00045C:SSL routines::tlsv13 alert certificate required, "
              "errno 0"},
             Code::kDenied,
             "GET /x: the server rejects the client certificate: OpenSSL SSL_read: "
             "error:0A00045C:SSL routines::tlsv13 alert certificate required, errno 0",
             Stage::kCredential},
        Case{{CURLE_SSL_CONNECT_ERROR, 0, "OpenSSL SSL_connect: wrong version number"},
             Code::kUnavailable,
             "GET /x: OpenSSL SSL_connect: wrong version number",
             Stage::kTls},
        Case{{CURLE_COULDNT_CONNECT, ECONNREFUSED, "Failed to connect to api.kessler.example"},
             Code::kUnavailable,
             "GET /x: connection refused"},
        Case{{CURLE_RECV_ERROR, 0, "Connection reset by peer"},
             Code::kUnavailable,
             "GET /x: Connection reset by peer"},
        Case{{CURLE_COULDNT_CONNECT, ENOENT, "Couldn't connect", true},
             Code::kNotFound,
             "GET /x: no such file or directory"},
        Case{{CURLE_COULDNT_CONNECT, EACCES, "Couldn't connect", true},
             Code::kDenied,
             "GET /x: permission denied"},
        Case{{CURLE_COULDNT_CONNECT, ECONNREFUSED, "Couldn't connect", true},
             Code::kUnavailable,
             "GET /x: connection refused"},
        Case{{CURLE_COULDNT_CONNECT, EACCES, "Failed to connect"},
             Code::kUnavailable,
             "GET /x: permission denied"},
        Case{{CURLE_URL_MALFORMAT, 0, "bad"}, Code::kInvalid, "GET /x: bad"},
        Case{{CURLE_OUT_OF_MEMORY, 0, ""}, Code::kInternal, "GET /x: Out of memory"}));

TEST_P(TransportErrorTable, SaysWhatToDo) {
  const Error error = transport_error("GET /x", GetParam().failure);
  EXPECT_EQ(error.code, GetParam().code);
  EXPECT_EQ(error.message, GetParam().message);
  EXPECT_EQ(error.with_prefix("register").request->stage, GetParam().stage);
  EXPECT_EQ("GET /x: " + error.with_prefix("register").reason(), GetParam().message);
}

}  // namespace
}  // namespace slurmlet::http
