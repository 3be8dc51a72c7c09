#pragma once

// Reading an open descriptor to its end, for those who open files in a way of their own (file.h
// opens by path).

#include <cstddef>
#include <string>

#include "base/result.h"

namespace slurmlet {

// What is left in `fd`. `name` is for errors: kInvalid (longer than max_bytes) or those of read(2).
Result<std::string> read_to_end(int fd, const std::string& name, std::size_t max_bytes);

}  // namespace slurmlet
