#pragma once

// Objects of any kind, for an administrator's commands (slurmlet-operator init, uninstall):
// manifests that are applied on the server's side, and what a list of a kind says of its objects.
// RestObjectApi belongs to the thread of its client and must not outlive it.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/rest_call.h"

namespace slurmlet::kube {

// One document of a file of manifests, as it stands there.
struct Manifest {
  std::string kind, name;
  std::string path;  // of the object
  std::string text;  // YAML
  bool operator==(const Manifest&) const = default;
};

// The documents of `text` in their order; kInvalid for a kind that is not known here. `file` is for
// messages.
Result<std::vector<Manifest>> read_manifests(std::string_view text, const std::string& file);

enum class Applied { kCreated, kChanged, kUnchanged };

class RestObjectApi : private RestCaller {
 public:
  using RestCaller::RestCaller;
  Result<nlohmann::json> get(const std::string& path);
  // The items.
  Result<std::vector<nlohmann::json>> list(const std::string& collection);
  // The same, of each the metadata alone: no secret travels.
  Result<std::vector<nlohmann::json>> list_metadata(const std::string& collection);
  // Server-side apply by `manager`; fields that others manage become its own.
  Result<Applied> apply(const Manifest& manifest, const std::string& manager);
  Result<bool> exists(const std::string& path);
  // Whether it exists and `manager` has not applied it.
  Result<bool> is_foreign(const std::string& path, const std::string& manager);
  Result<nlohmann::json> create(const std::string& collection, const nlohmann::json& body);
  // JSON merge patch. kConflict: the object is not of the resourceVersion in the body.
  Status merge(const std::string& path, const nlohmann::json& body);
  Status remove(const std::string& path);  // an object that is gone is none too many

 private:
  Result<std::vector<nlohmann::json>> items(http::Request request);
};

}  // namespace slurmlet::kube
