#include "kube/object_api.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "kube/json_read.h"
#include "kube/rest_send.h"
#include "yaml/document.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

constexpr const char* kApply = "application/apply-patch+yaml";
constexpr const char* kMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
constexpr std::size_t kMaxList = std::size_t{256} << 20;

struct Kind {
  std::string_view name;
  const char* plural;
};
constexpr std::array kKinds{
    Kind{"Namespace", "namespaces"},
    Kind{"ServiceAccount", "serviceaccounts"},
    Kind{"ClusterRole", "clusterroles"},
    Kind{"ClusterRoleBinding", "clusterrolebindings"},
    Kind{"Role", "roles"},
    Kind{"RoleBinding", "rolebindings"},
    Kind{"ValidatingAdmissionPolicy", "validatingadmissionpolicies"},
    Kind{"ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"}};

std::string text_at(const yaml::Value* map, std::string_view key) {
  const yaml::Value* value = map == nullptr ? nullptr : map->find(key);
  return value == nullptr ? "" : value->text();
}

Result<Manifest> read_manifest(std::string text, const std::string& file) {
  const auto document = TRY(yaml::parse(text, file));
  const yaml::Value& root = document.root();
  const yaml::Value* metadata = root.find("metadata");
  const std::string version = text_at(&root, "apiVersion");
  const std::string name_space = text_at(metadata, "namespace");
  Manifest out{text_at(&root, "kind"), text_at(metadata, "name"), "", std::move(text)};
  for (const Kind& kind : kKinds) {
    if (kind.name == out.kind && !out.name.empty()) {
      out.path = (contains(version, "/") ? "/apis/" : "/api/") + version +
                 (name_space.empty() ? "" : "/namespaces/" + url_encode(name_space)) + "/" +
                 kind.plural + "/" + url_encode(out.name);
      return out;
    }
  }
  return Error{Code::kInvalid, file + ": kind \"" + out.kind + "\" is not known here"};
}

// What is applied: the server may write who manages which field anew, and a controller the status.
json as_applied(json object) {
  if (find(member(object, "metadata"), "resourceVersion") != nullptr) {
    object.erase("status");
    object["metadata"].erase("resourceVersion");
  }
  return object;
}

}  // namespace

Result<std::vector<Manifest>> read_manifests(std::string_view text, const std::string& file) {
  constexpr std::string_view kNext = "\n---\n";
  std::vector<Manifest> out;
  while (!text.empty()) {
    const auto end = text.find(kNext);
    out.push_back(TRY(read_manifest(std::string{text.substr(0, end)}, file)));
    text = end == std::string_view::npos ? "" : text.substr(end + kNext.size());
  }
  return out;
}

Result<json> RestObjectApi::get(const std::string& path) {
  const http::Request request{"GET", path};
  const auto response = TRY(rest_call(client_, request, options_, "GET"));
  return answer_json(request, response);
}

Result<std::vector<json>> RestObjectApi::list(const std::string& collection) {
  return items({"GET", collection});
}

Result<std::vector<json>> RestObjectApi::list_metadata(const std::string& collection) {
  http::Request request{"GET", collection};
  request.accept = kMetadataList;
  return items(std::move(request));
}

Result<std::vector<json>> RestObjectApi::items(http::Request request) {
  request.max_body = kMaxList;
  const auto response = TRY(rest_call(client_, request, options_, "LIST"));
  const auto answer = TRY(answer_json(request, response));
  const json& found = list_at(answer, "items");
  return std::vector<json>{found.begin(), found.end()};
}

Result<Applied> RestObjectApi::apply(const Manifest& manifest, const std::string& manager) {
  const auto before = get(manifest.path);
  if (!before && before.error().code != Code::kNotFound) {
    return before.error();
  }
  const http::Request request{"PATCH",
                              manifest.path + "?force=true&fieldManager=" + url_encode(manager),
                              manifest.text, kApply};
  const auto response = TRY(rest_call(client_, request, options_, "APPLY"));
  const auto after = TRY(answer_json(request, response));
  if (!before) {
    return Applied::kCreated;
  }
  return as_applied(*before) == as_applied(after) ? Applied::kUnchanged : Applied::kChanged;
}

Result<bool> RestObjectApi::exists(const std::string& path) {
  const auto found = get(path);
  return found || found.error().code == Code::kNotFound ? Result<bool>{found.has_value()}
                                                        : found.error();
}

Result<bool> RestObjectApi::is_foreign(const std::string& path, const std::string& manager) {
  const auto response = rest_call(client_, {"GET", path}, options_, "GET");
  if (!response) {
    return response.error().code == Code::kNotFound ? Result<bool>{false} : response.error();
  }
  // parse_json() leaves these fields out.
  const json object = json::parse(response->body, nullptr, false);
  const json& fields = list_at(member(object, "metadata"), "managedFields");
  return std::none_of(fields.begin(), fields.end(),
                      [&](const json& field) { return string_at(field, "manager") == manager; });
}

Result<json> RestObjectApi::create(const std::string& collection, const json& body) {
  const http::Request request{"POST", collection, to_text(body), kJson};
  const auto response = TRY(rest_call(client_, request, options_, "POST"));
  return answer_json(request, response);
}

Status RestObjectApi::merge(const std::string& path, const json& body) {
  return send_only(client_, options_,
                   {"PATCH", path + "?fieldManager=slurmlet-operator", to_text(body), kMergePatch});
}

Status RestObjectApi::remove(const std::string& path) {
  const Status removed = send_only(client_, options_, {"DELETE", path});
  return !removed && removed.error().code == Code::kNotFound ? Status{} : removed;
}

}  // namespace slurmlet::kube
