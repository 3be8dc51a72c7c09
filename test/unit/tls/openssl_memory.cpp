#include "tls/openssl_memory.h"

#include <malloc.h>
#include <openssl/crypto.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace slurmlet::tls {
namespace {

std::atomic<std::size_t> live{0};
std::atomic<std::size_t> peak{0};

void* counted(void* block) {
  const std::size_t now = live += ::malloc_usable_size(block);
  if (now > peak) {
    peak = now;
  }
  return block;
}

void* allocate(std::size_t size, const char* /*file*/, int /*line*/) {
  return counted(std::malloc(size));
}

void* reallocate(void* block, std::size_t size, const char* /*file*/, int /*line*/) {
  live -= ::malloc_usable_size(block);
  return counted(std::realloc(block, size));
}

void release(void* block, const char* /*file*/, int /*line*/) {
  live -= ::malloc_usable_size(block);
  std::free(block);
}

// OpenSSL takes other functions only before it has allocated anything.
const bool installed = [] {
  if (CRYPTO_set_mem_functions(allocate, reallocate, release) != 1) {
    std::fputs("openssl_memory: OpenSSL is in use already\n", stderr);
    std::abort();
  }
  return true;
}();

}  // namespace

std::size_t openssl_bytes() { return live; }
std::size_t openssl_peak() { return peak; }
void restart_openssl_peak() { peak = live.load(); }

}  // namespace slurmlet::tls
