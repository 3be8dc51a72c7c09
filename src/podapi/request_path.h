#pragma once

// Normalizes paths for both the gate and the routes, since any difference would bypass
// authorization. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace slurmlet::podapi {

// Percent-decoded once, then without empty, "." and ".." segments, so that "/pods/%2e%2e/metrics"
// is "/metrics". A trailing "/" is kept. The kubelet's ServeMux redirects to that path instead.
// Nothing if an escape is malformed.
std::optional<std::string> normalized_path(std::string_view path);

// Whether `path` is `prefix` or below it, case-sensitive, as in the kubelet (isSubpath in
// pkg/kubelet/server/auth.go). A trailing "/" of `prefix` is ignored.
bool is_at_or_below(std::string_view path, std::string_view prefix);

}  // namespace slurmlet::podapi
