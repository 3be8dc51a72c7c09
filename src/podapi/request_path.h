#pragma once

// The path that a request means, the same for the gate and for the routes: a difference between
// the two would be a way around authorization. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace slurmlet::podapi {

// Percent-decoded once, then without empty, "." and ".." segments, so that "/pods/%2e%2e/metrics"
// is "/metrics". A "/" at the end is kept. Go's ServeMux, which the kubelet uses, redirects to that
// path instead of serving it, with the same end. Nothing if an escape is malformed.
std::optional<std::string> normalized_path(std::string_view path);

// Whether `path` is `prefix` or below it; a "/" at the end of `prefix` does not count. The
// kubelet's rule (isSubpath in pkg/kubelet/server/auth.go), case-sensitive.
bool is_at_or_below(std::string_view path, std::string_view prefix);

}  // namespace slurmlet::podapi
