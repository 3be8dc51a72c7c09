// Fuzzes what reads certificates, keys and token signatures out of text that others write. The
// input is the text; its first line doubles as a signature over the rest.
//
// Beside what the sanitizers find: nothing is left in OpenSSL's error queue, errors are kInvalid
// and name their source, and what is read twice by different ways agrees.

#include <openssl/err.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tls/certificates.h"
#include "tls/pem.h"

namespace {

using namespace slurmlet;

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

void require_named(const Error& error) {
  require(error.code == Code::kInvalid && error.message.starts_with("source: "));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};

  const auto certificates = tls::parse_certificates(text, "source");
  const auto summary = tls::read_certificate(text, "source");
  const auto pins = tls::certificates_with_pins(text, "source");
  require(certificates.has_value() == summary.has_value());
  if (certificates) {
    require(!certificates->empty());
    require(!pins || pins->size() == certificates->size());
  } else {
    require_named(certificates.error());
    require_named(summary.error());
    require(!pins);
  }
  if (!pins) {
    require_named(pins.error());
  }

  const auto key = tls::parse_private_key(text, "source");
  require(!tls::public_key_digest(text) || key);
  const bool is_pair = tls::is_pair(text, text);
  require(!is_pair || (certificates && key));
  const auto own = tls::parse_credential(text, "source", text, "source");
  require(own.has_value() == is_pair);
  if (!own) {
    require_named(own.error());
  }
  static_cast<void>(tls::parse_trust(text, "source"));

  const std::size_t line = text.find('\n');
  if (line != std::string::npos) {
    // The secret is known to the signer alone; finding it is not what a fuzzer can do.
    const auto payload = std::string_view{text}.substr(line + 1);
    const auto jws = std::string_view{text}.substr(0, line);
    if (tls::is_signed_with_token(jws, payload, "abcdef", "0123456789abcdef")) {
      require(!tls::is_signed_with_token(jws, payload, "abcdef", "0123456789abcdeg"));
      require(!tls::is_signed_with_token(jws, payload, "abcdeg", "0123456789abcdef"));
    }
  }
  require(ERR_peek_error() == 0);
  return 0;
}
