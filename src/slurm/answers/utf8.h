#pragma once

// Text of other programs made fit for JSON and the Kubernetes API. Pure.

#include <string>
#include <string_view>

namespace slurmlet::slurm {

// The text with every byte that is not part of valid UTF-8 (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF) replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace slurmlet::slurm
