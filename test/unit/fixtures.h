#pragma once

#include <filesystem>

namespace slurmlet {

// The directory test/fixtures of this clone. A function, and defined in one file: a path in the
// flags of every test would have each clone compile all of them again (ccache).
std::filesystem::path fixtures();

}  // namespace slurmlet
