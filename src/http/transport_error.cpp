#include "http/transport_error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <string_view>
#include <system_error>

#include "base/text.h"

namespace slurmlet::http {
namespace {

using Stage = RequestFailure::Stage;

// TLS alerts that reject a client certificate (RFC 8446 section 6.2, in OpenSSL's words).
bool rejects_our_certificate(const std::string& detail) {
  constexpr std::array kAlerts{"alert unknown ca", "alert bad certificate", "alert certificate",
                               "alert unsupported certificate"};
  return std::any_of(kAlerts.begin(), kAlerts.end(),
                     [&detail](const char* alert) { return contains(detail, alert); });
}

// "SSL certificate problem: unable to …" without libcurl's opening words.
std::string without_prefix(const std::string& detail) {
  for (const std::string_view prefix : {"SSL certificate problem: ", "SSL: "}) {
    if (detail.starts_with(prefix)) {
      return detail.substr(prefix.size());
    }
  }
  return detail;
}

struct Distrust {
  Stage stage;
  const char* fix;
};

// Why the server's certificate is not believed, by the words of OpenSSL and libcurl.
Distrust distrust_of(const std::string& detail) {
  const auto says_any = [&](std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const char* part) { return contains(detail, part); });
  };
  if (says_any({"has expired"})) {
    return {Stage::kServerExpired,
            "renew the server's certificate, or correct this machine's clock if it is ahead"};
  }
  if (says_any({"not yet valid"})) {
    return {Stage::kServerNotYetValid,
            "correct this machine's clock if it is behind, else the server's certificate"};
  }
  if (says_any({"subject name", "common name"})) {
    return {Stage::kServerName,
            "use a name or an address that the server's certificate contains, or add this one to "
            "the certificate"};
  }
  if (says_any({"issuer certificate", "self-signed", "self signed", "verify the first"})) {
    return {Stage::kServerIssuer,
            "put the CA that signed the server's certificate into the CA bundle"};
  }
  return {Stage::kTls, "check the server's certificate and the CA bundle"};
}

// That of a unix socket's path says more than that nobody listens.
Code connect_code(const TransportFailure& failure) {
  if (!failure.unix_socket) {
    return Code::kUnavailable;
  }
  switch (failure.os_error) {
    case ENOENT:
      return Code::kNotFound;
    case EACCES:
    case EPERM:
      return Code::kDenied;
    default:
      return Code::kUnavailable;
  }
}

std::string connect_text(const TransportFailure& failure, const std::string& detail) {
  return failure.os_error == 0
             ? detail
             : to_lower(std::generic_category().message(static_cast<int>(failure.os_error)));
}

// What is at fault: the URL, this machine, or the network.
Code local_code(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Code::kInvalid;
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_FAILED_INIT:
    case CURLE_WRITE_ERROR:
      return Code::kInternal;
    default:
      return Code::kUnavailable;
  }
}

}  // namespace

Error transport_error(const std::string& what, const TransportFailure& failure) {
  const std::string detail =
      failure.detail.empty() ? curl_easy_strerror(failure.code) : failure.detail;
  const auto error = [&](Code code, const std::string& text, Stage stage) {
    return Error{code, what + ": " + text, {}, RequestFailure{stage, 0, text}};
  };
  switch (failure.code) {
    case CURLE_COULDNT_CONNECT:
      return error(connect_code(failure), connect_text(failure, detail), Stage::kConnection);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR: {
      const Distrust why = distrust_of(detail);
      return error(Code::kDenied,
                   "certificate verify failed: " + without_prefix(detail) + "; " + why.fix,
                   why.stage);
    }
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return error(Code::kUnavailable, detail, Stage::kName);
    default:
      break;
  }
  if (const Code code = local_code(failure.code); code != Code::kUnavailable) {
    return error(code, detail, Stage::kConnection);
  }
  if (rejects_our_certificate(detail)) {
    return error(Code::kDenied, "the server rejects the client certificate: " + detail,
                 Stage::kCredential);
  }
  const bool is_tls = contains(to_lower(detail), "ssl") || contains(to_lower(detail), "tls");
  return error(Code::kUnavailable, detail, is_tls ? Stage::kTls : Stage::kConnection);
}

}  // namespace slurmlet::http
