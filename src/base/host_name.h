#pragma once

#include <sys/utsname.h>

#include <string>

namespace slurmlet {

// uname -n, as the kernel has it; "" where it cannot be read.
inline std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

}  // namespace slurmlet
