#pragma once

// Counts what OpenSSL holds in memory. Works for the whole test program it is linked to.

#include <cstddef>

namespace slurmlet::tls {

std::size_t openssl_bytes();
// The most since the last call of restart_openssl_peak().
std::size_t openssl_peak();
void restart_openssl_peak();

}  // namespace slurmlet::tls
