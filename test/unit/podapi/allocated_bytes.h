#pragma once

// How many bytes of the heap are in use, in builds with and without a sanitizer.

#include <malloc.h>

#include <cstddef>

// mallinfo() does not count the allocators of the sanitizers' run-time libraries.
extern "C" [[gnu::weak]] std::size_t __sanitizer_get_current_allocated_bytes();

namespace slurmlet::podapi {

inline std::size_t allocated_bytes() {
  return __sanitizer_get_current_allocated_bytes != nullptr
             ? __sanitizer_get_current_allocated_bytes()
             : ::mallinfo2().uordblks;
}

}  // namespace slurmlet::podapi
