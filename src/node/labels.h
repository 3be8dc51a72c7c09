#pragma once

// Kubernetes label syntax and what the NodeRestriction admission plugin lets a node credential set
// on itself (plugin/pkg/admission/noderestriction; k8s.io/kubelet/pkg/apis/well_known_labels.go);
// taints, of the same syntax. Pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/policy.h"

namespace slurmlet::node {

// Nothing if `key` is a valid label key, else what is wrong with it, for people.
std::optional<std::string> label_key_problem(std::string_view key);
// The same for a label value (at most 63 characters, alphanumeric ends, [-_.A-Za-z0-9]).
std::optional<std::string> label_value_problem(std::string_view value);
// Nothing if a node may set this label on itself, else why not and what to do instead.
std::optional<std::string> node_restriction_problem(std::string_view key);
// Whether `name` is a lower-case RFC 1123 subdomain, as Node names must be.
bool is_rfc1123_subdomain(std::string_view name);

// Taints as the kubelet's --register-with-taints has them: KEY=VALUE:EFFECT or KEY:EFFECT, several
// with commas between; kInvalid with the taint and what is wrong with it, for people.
Result<std::vector<Taint>> parse_taints(std::string_view text);

}  // namespace slurmlet::node
