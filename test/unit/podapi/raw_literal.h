#pragma once

#include <cstddef>
#include <string>

namespace slurmlet::podapi {

// A literal with NULs in it.
template <std::size_t size>
std::string raw(const char (&literal)[size]) {
  return {literal, size - 1};
}

}  // namespace slurmlet::podapi
