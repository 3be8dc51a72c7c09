#pragma once

// The environment variables that slurmlet reads. process_environment() is the only caller of getenv
// in the program; everything else gets an EnvLookup. An empty value counts as unset.

#include <functional>
#include <optional>
#include <string>
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

// Not thread-safe against setenv; call before threads start.
EnvLookup process_environment();

// Puts what the environment says into the draft:
//   the variables named in settings_table.h; KUBECONFIG may be a list divided by ':', of which the
//   first existing file is taken (the first one if none exists);
//   HTTPS_PROXY and NO_PROXY, also in lower case, for the API server;
//   VKUBELET_TAINT_* of virtual-kubelet: a warning each.
void apply_environment(const EnvLookup& environment, const FileReader& files, Draft& draft);

// To be called last: when neither kubeconfig nor server is configured, KUBERNETES_SERVICE_HOST and
// _PORT name the API server and the service account's files the credential, as in every pod.
void apply_in_cluster(const EnvLookup& environment, Draft& draft);

}  // namespace slurmlet::config
