#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include "tls/certificates.h"
#include "tls/openssl_ptr.h"
#include "tls/pem.h"

namespace slurmlet::tls {

Result<std::string> request_public_key_digest(const std::string& request_pem) {
  ERR_clear_error();
  const BioPtr bio{BIO_new_mem_buf(request_pem.data(), static_cast<int>(request_pem.size()))};
  const RequestPtr request{PEM_read_bio_X509_REQ(bio.get(), nullptr, nullptr, nullptr)};
  unsigned char* bytes = nullptr;
  const int length = request ? i2d_X509_PUBKEY(X509_REQ_get_X509_PUBKEY(request.get()), &bytes) : 0;
  if (length <= 0) {
    return Error{Code::kInvalid,
                 "not a PEM certificate request (-----BEGIN CERTIFICATE REQUEST-----): " +
                     take_openssl_error()};
  }
  const std::string info{reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length)};
  OPENSSL_free(bytes);
  std::string digest;
  for (const char byte : sha256(info)) {
    digest += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return digest;
}

}  // namespace slurmlet::tls
