#pragma once

// Kubernetes label syntax and what the NodeRestriction admission plugin lets a node credential set
// on itself (plugin/pkg/admission/noderestriction; k8s.io/kubelet/pkg/apis/well_known_labels.go).
// Pure functions.

#include <optional>
#include <string>
#include <string_view>

namespace slurmlet::node {

// Nothing if `key` is a valid label key, else what is wrong with it, for people.
std::optional<std::string> label_key_problem(std::string_view key);
// The same for a label value (at most 63 characters, alphanumeric ends, [-_.A-Za-z0-9]).
std::optional<std::string> label_value_problem(std::string_view value);
// Nothing if a node may set this label on itself, else why not and what to do instead.
std::optional<std::string> node_restriction_problem(std::string_view key);
// Whether `name` is a lower-case RFC 1123 subdomain, as Node names must be.
bool is_rfc1123_subdomain(std::string_view name);

}  // namespace slurmlet::node
