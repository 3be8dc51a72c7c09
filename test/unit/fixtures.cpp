#include "fixtures.h"

namespace slurmlet {

std::filesystem::path fixtures() { return SLURMLET_FIXTURES; }

}  // namespace slurmlet
