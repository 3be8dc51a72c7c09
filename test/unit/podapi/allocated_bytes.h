#pragma once

// How many bytes of the heap are in use, in builds with and without AddressSanitizer.

#include <malloc.h>

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
// Of the sanitizer's run-time library, whose header gcc does not install.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace slurmlet::podapi {

inline std::size_t allocated_bytes() {
#if defined(__SANITIZE_ADDRESS__)
  return __sanitizer_get_current_allocated_bytes();
#else
  return ::mallinfo2().uordblks;
#endif
}

}  // namespace slurmlet::podapi
