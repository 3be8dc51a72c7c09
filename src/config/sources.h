#pragma once

// Where settings come from beside the command line: configuration files, the environment,
// virtual-kubelet's --provider-config. Each puts what it says into a draft; all problems go there
// too.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/draft.h"

namespace slurmlet::config {

// Looks a variable up; nothing when it is not set.
using EnvLookup = std::function<std::optional<std::string>(const std::string& name)>;
// The whole content of a file, as base/file.h's read_file.
using FileReader = std::function<Result<std::string>(const std::string& path)>;
// The names in a directory; kNotFound when there is none.
using DirectoryReader = std::function<Result<std::vector<std::string>>(const std::string& path)>;

// The only caller of getenv for settings; everything else gets an EnvLookup. Not thread-safe
// against setenv; call before threads start.
EnvLookup process_environment();

// The configuration file: YAML or JSON, apiVersion slurmlet.io/v1alpha1, kind
// SlurmletConfiguration, keys grouped as in settings_table.h. Unknown keys are rejected; each
// problem with FILE:LINE:COL.
void apply_config_file(std::string_view text, const std::string& file_name, Draft& draft);

// The environment; an empty value counts as unset:
//   the variables named in settings_table.h; KUBECONFIG may be a list divided by ':', of which the
//   first existing file is taken (the first one if none exists);
//   HTTPS_PROXY and NO_PROXY, also in lower case, for the API server.
void apply_environment(const EnvLookup& environment, const FileReader& files, Draft& draft);

// virtual-kubelet's --provider-config: the JSON file of its mock provider (type MockConfig), with
// the member "labels" that the fork for Cluster API's bare-metal nodes added:
//   {"<node name>": {"cpu": "0", "memory": "0Gi", "pods": "0", "others": {…},
//                    "labels": {"metal3.io/uuid": "…"}, "providerID": "…"}}
// Labels and providerID of the entry for this node are taken; its resources have no effect.
//
// To be called when node.name is final. What node.labels, node.metal3UUID and node.providerID say
// is kept; a contradiction in the last two is a problem.
void apply_provider_config(std::string_view text, const std::string& file_name, Draft& draft);

// To be called last: when neither kubeconfig nor server is configured, KUBERNETES_SERVICE_HOST and
// _PORT name the API server and the service account's files the credential, as in every pod.
void apply_in_cluster(const EnvLookup& environment, Draft& draft);

}  // namespace slurmlet::config
