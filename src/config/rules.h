#pragma once

// The rules of single values. Each answers what is wrong as the end of a sentence that starts with
// the setting's name: `is "500ms"; it must be at least 1s`. Pure functions.

#include <string>
#include <string_view>

#include "config/settings_table.h"

namespace slurmlet::config {

// Of texts (Row::rule).
Problem absolute_path_problem(std::string_view text);
Problem server_problem(std::string_view text);      // https://HOST[:PORT]
Problem rest_url_problem(std::string_view text);    // unix:/PATH, https://…
Problem node_name_problem(std::string_view text);   // RFC 1123 subdomain
Problem slurm_name_problem(std::string_view text);  // one Slurm NodeName, no hostlist expression
Problem ip_problem(std::string_view text);
Problem node_ips_problem(std::string_view text);  // one, or one of each family
Problem taints_problem(std::string_view text);    // KEY[=VALUE]:EFFECT,…
Problem provider_id_problem(std::string_view text);
Problem label_text_problem(std::string_view text);    // the value of a label
Problem pem_problem(std::string_view text);           // PEM text with a certificate
Problem slurm_labels_problem(std::string_view text);  // "none", or some, with commas between
Problem key_hashes_problem(std::string_view text);    // sha256:<64 hex digits>, with commas between

// Of an entry of a map (Row::entry_rule). Why a node must not be given this label, for all sources
// of labels: rules of Kubernetes, NodeRestriction, slurmlet's own.
Problem label_problem(const std::string& key, const std::string& value);
// Gres name or name:type → extended resource name.
Problem gpu_resource_problem(const std::string& gres, const std::string& resource);

// Applies row.rule to a text that is not empty.
Problem text_problem(const Row& row, std::string_view text);
// Limits of whole numbers and durations (in ms).
Problem range_problem(const Row& row, std::int64_t value);
// cloud-init leaves "CI_MISSING_JINJA_VAR/name" where a template variable had no value.
Problem template_problem(std::string_view text);

}  // namespace slurmlet::config
