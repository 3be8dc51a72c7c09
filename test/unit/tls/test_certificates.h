#pragma once

// Throw-away certificates for tests, made with OpenSSL in memory (P-256, SHA-256).

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"

namespace slurmlet::tls {

struct CertificateSpec {
  std::string common_name;
  std::vector<std::string> organizations = {};
  std::vector<std::string> names = {};  // subjectAltName entries: "DNS:host", "IP:127.0.0.1"
  WallTime not_before = std::chrono::system_clock::now() - std::chrono::hours{1};
  WallTime not_after = std::chrono::system_clock::now() + std::chrono::hours{1};
  bool is_ca = false;
  std::string purposes = {};  // extendedKeyUsage: "serverAuth", "clientAuth"
};

struct Issued {
  std::string certificate;  // PEM
  std::string key;          // PEM, PKCS #8
};

Issued make_self_signed(const CertificateSpec& spec);
Issued issue(const Issued& ca, const CertificateSpec& spec);

// The key again, encrypted with a password.
std::string encrypt_key(const std::string& key);
// An RSA pair too short for any present-day policy.
Issued make_weak_rsa();

inline void require(bool good) {
  if (!good) {
    throw std::runtime_error("OpenSSL failed in a test helper");
  }
}

}  // namespace slurmlet::tls
