#include "kube/kubeconfig.h"

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "tls/client_identity.h"
#include "yaml/document.h"

namespace slurmlet::kube {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

// One reading of one document. Each step returns an Error that names FILE:LINE:COL and the key.
class Reader {
 public:
  Reader(const yaml::Document& document, fs::path folder)
      : document_(document), folder_(std::move(folder)) {}

  Result<ClusterAccess> read();

 private:
  struct Entry {
    const yaml::Value* content = nullptr;  // the "cluster", "user" or "context" map
    std::string name;
  };
  struct PemField {
    const char* data_key;
    const char* file_key;
    std::optional<std::string>& text;
    std::string& name;
  };

  Error invalid(const yaml::Value& at, const std::string& what) const {
    return {Code::kInvalid, document_.where_key(at) + ": " + what};
  }
  Result<std::string> text(const yaml::Value& map, const char* key) const;
  Result<std::string> required(const yaml::Value& map, const char* key, const char* fix) const;
  Result<Entry> entry(const char* list_key, const char* content_key, const std::string& name,
                      const yaml::Value& referrer) const;
  Status read_cluster(const Entry& cluster);
  Status read_user(const Entry& user);
  Status reject_foreign_credentials(const Entry& user) const;
  Status read_token(const yaml::Value& map, const std::string& user);
  Status read_pem(const yaml::Value& map, const PemField& field);
  Result<std::string> decoded(const yaml::Value& at, const char* key) const;
  std::string resolved(const std::string& path) const {
    return fs::path(path).is_absolute() ? path : (folder_ / path).lexically_normal().string();
  }

  const yaml::Document& document_;
  fs::path folder_;
  ClusterAccess access_;
};

// "" when the key is absent or null; the text as written for numbers (a token may look like one).
Result<std::string> Reader::text(const yaml::Value& map, const char* key) const {
  const yaml::Value* value = map.find(key);
  if (value == nullptr || value->is_null()) {
    return std::string{};
  }
  if (!value->is_scalar()) {
    return invalid(*value, std::string(key) + " must be text, not " + to_string(value->kind()));
  }
  return value->text();
}

Result<std::string> Reader::required(const yaml::Value& map, const char* key,
                                     const char* fix) const {
  auto value = text(map, key);
  if (value && value->empty()) {
    const yaml::Value* present = map.find(key);
    return invalid(present == nullptr ? map : *present,
                   std::string(key) + " is missing or empty; " + fix);
  }
  return value;
}

Result<Reader::Entry> Reader::entry(const char* list_key, const char* content_key,
                                    const std::string& name, const yaml::Value& referrer) const {
  const yaml::Value* list = document_.root().find(list_key);
  if (list != nullptr && !list->is_null() && !list->is_list()) {
    return invalid(*list,
                   std::string(list_key) + " must be a list, not " + to_string(list->kind()));
  }
  if (list != nullptr) {
    for (const yaml::Value& item : list->items()) {
      const yaml::Value* item_name = item.find("name");
      if (item_name == nullptr || item_name->text() != name) {
        continue;
      }
      const yaml::Value* content = item.find(content_key);
      if (content == nullptr || !content->is_map()) {
        return invalid(content == nullptr ? item : *content,
                       std::string(list_key) + " entry " + in_quotes(name) + " needs a map \"" +
                           content_key + "\"");
      }
      return Entry{content, name};
    }
  }
  return invalid(referrer,
                 in_quotes(name) + " is not in " + list_key + "; add it there or correct the name");
}

Result<ClusterAccess> Reader::read() {
  const yaml::Value& root = document_.root();
  if (!root.is_map()) {
    return invalid(root,
                   "not a kubeconfig: the file must be a map with current-context, clusters, "
                   "users and contexts");
  }
  const auto current = TRY(required(root, "current-context", "set it to the name of a context"));
  const auto context = TRY(entry("contexts", "context", current, *root.find("current-context")));
  const yaml::Value& map = *context.content;
  const auto cluster_name = TRY(required(map, "cluster", "set it to the name of a cluster"));
  const auto user_name = TRY(required(map, "user", "set it to the name of a user"));
  const auto cluster = TRY(entry("clusters", "cluster", cluster_name, *map.find("cluster")));
  const auto user = TRY(entry("users", "user", user_name, *map.find("user")));
  TRY(read_cluster(cluster));
  TRY(read_user(user));
  return std::move(access_);
}

Status Reader::read_cluster(const Entry& cluster) {
  const yaml::Value& map = *cluster.content;
  const yaml::Value* insecure = map.find("insecure-skip-tls-verify");
  if (insecure != nullptr && !insecure->is_null() && insecure->as_bool() != false) {
    return invalid(*insecure,
                   "insecure-skip-tls-verify of cluster " + in_quotes(cluster.name) +
                       " is rejected: anyone on the network could steal the credential; remove it "
                       "and set certificate-authority or certificate-authority-data");
  }
  access_.server = TRY(required(map, "server", "set it to https://HOST:PORT"));
  while (access_.server.ends_with('/')) {
    access_.server.pop_back();
  }
  if (const std::string problem = server_url_problem(access_.server); !problem.empty()) {
    return invalid(*map.find("server"),
                   "server of cluster " + in_quotes(cluster.name) + " " + problem);
  }
  access_.proxy_url = TRY(text(map, "proxy-url"));
  access_.tls_server_name = TRY(text(map, "tls-server-name"));
  return read_pem(map, {"certificate-authority-data", "certificate-authority", access_.pem.ca,
                        access_.pem.ca_name});
}

Status Reader::reject_foreign_credentials(const Entry& user) const {
  static constexpr const char* kOwnCredential =
      "is not supported: slurmlet runs no credential helpers; replace it with client-certificate "
      "and client-key, or with tokenFile";
  static constexpr const char* kPassword =
      "is not supported: API servers no longer take passwords; replace user name and password with "
      "client-certificate and client-key, or with tokenFile";
  static constexpr const char* kImpersonation =
      "is not supported: slurmlet acts as the user itself; remove it";
  static constexpr std::pair<const char*, const char*> kRejected[] = {
      {"exec", kOwnCredential},      {"auth-provider", kOwnCredential},
      {"username", kPassword},       {"password", kPassword},
      {"as", kImpersonation},        {"as-uid", kImpersonation},
      {"as-groups", kImpersonation}, {"as-user-extra", kImpersonation}};
  for (const auto& [key, sentence] : kRejected) {
    const yaml::Value* value = user.content->find(key);
    if (value != nullptr && !value->is_null()) {
      return invalid(*value, std::string(key) + " of " + in_quotes(user.name) + " " + sentence);
    }
  }
  return {};
}

Status Reader::read_user(const Entry& user) {
  const yaml::Value& map = *user.content;
  TRY(reject_foreign_credentials(user));
  tls::PemSources& pem = access_.pem;
  for (const PemField& field : {PemField{"client-certificate-data", "client-certificate",
                                         pem.certificate, pem.certificate_name},
                                PemField{"client-key-data", "client-key", pem.key, pem.key_name}}) {
    TRY(read_pem(map, field));
  }
  if (pem.certificate.has_value() != pem.key.has_value()) {
    return invalid(map, pem.certificate
                            ? "user " + in_quotes(user.name) +
                                  " has a client certificate without its key; set client-key"
                            : "user " + in_quotes(user.name) +
                                  " has a client key without its certificate; set "
                                  "client-certificate");
  }
  TRY(read_token(map, user.name));
  if (!pem.certificate && access_.token.empty() && access_.token_file.empty()) {
    return invalid(map, "user " + in_quotes(user.name) +
                            " has no credential; set client-certificate and client-key, or "
                            "tokenFile");
  }
  return {};
}

Status Reader::read_token(const yaml::Value& map, const std::string& user) {
  access_.token = TRY(text(map, "token"));
  if (access_.token.find_first_of("\r\n\t ") != std::string::npos) {
    return invalid(*map.find("token"), "token of user " + in_quotes(user) +
                                           " has white space in it; write it on one line");
  }
  if (const auto file = TRY(text(map, "tokenFile")); !file.empty()) {
    access_.token_file = resolved(file);
  }
  const bool has_one = !access_.token.empty() || !access_.token_file.empty();
  for (const char* key : {"token", "tokenFile"}) {
    if (const yaml::Value* empty = map.find(key); empty != nullptr && !has_one) {
      return invalid(*empty, std::string(key) + " of user " + in_quotes(user) +
                                 " is empty; fill it, or remove it where the user has a "
                                 "client certificate");
    }
  }
  return {};
}

// What the value is base64 of.
Result<std::string> Reader::decoded(const yaml::Value& at, const char* key) const {
  constexpr const char* kPemBegins = "-----BEGIN ";
  auto pem = tls::base64_decode(at.text());
  if (pem && contains(*pem, kPemBegins)) {
    return pem;
  }
  const auto twice = pem ? tls::base64_decode(*pem) : pem;
  return invalid(at, std::string(key) +
                         (twice && contains(*twice, kPemBegins)
                              ? " is base64 of base64; replace it with what base64 -d prints of it"
                          : pem ? " is base64 of something that is not PEM; write the PEM text "
                                  "through base64 -w0"
                                : " is not valid base64; write the PEM text through base64 -w0"));
}

// Inline data wins over the file, as client-go has it. A key that is there must hold something: an
// empty one would mean no CA of the cluster's, and with it the public ones.
Status Reader::read_pem(const yaml::Value& map, const PemField& field) {
  const yaml::Value* inline_data = map.find(field.data_key);
  const yaml::Value* file = map.find(field.file_key);
  if (!TRY(text(map, field.data_key)).empty()) {
    field.text = TRY(decoded(*inline_data, field.data_key));
    field.name = document_.where_key(*inline_data) + ": " + field.data_key;
    return {};
  }
  const auto path = TRY(text(map, field.file_key));
  if (path.empty() && file != nullptr) {
    return invalid(*file, std::string(field.file_key) + " is empty; set it to a PEM file");
  }
  if (path.empty() && inline_data != nullptr) {
    return invalid(*inline_data, std::string(field.data_key) +
                                     " is empty; write the PEM text through base64 -w0 there");
  }
  if (path.empty()) {
    return {};
  }
  field.name = resolved(path);
  auto content = read_file(field.name);
  if (!content) {
    return content.error().with_prefix(document_.where_key(*map.find(field.file_key)) + ": " +
                                       field.file_key);
  }
  field.text = *std::move(content);
  access_.files.emplace_back(field.name);
  return {};
}

// The names that the kubelet writes.
constexpr const char* kCluster = "default-cluster";
constexpr const char* kUser = "default-auth";
constexpr const char* kContext = "default-context";

ordered_json cluster_json(const ClusterAccess& access) {
  ordered_json cluster;
  if (access.pem.ca) {
    cluster["certificate-authority-data"] = tls::base64_encode(*access.pem.ca);
  }
  if (!access.proxy_url.empty()) {
    cluster["proxy-url"] = access.proxy_url;
  }
  cluster["server"] = access.server;
  if (!access.tls_server_name.empty()) {
    cluster["tls-server-name"] = access.tls_server_name;
  }
  return cluster;
}

ordered_json named(const char* name, const char* kind, ordered_json content) {
  ordered_json entry;
  entry["name"] = name;
  entry[kind] = std::move(content);
  return ordered_json::array({std::move(entry)});
}

std::string kubeconfig_text(const ClusterAccess& access, ordered_json user,
                            const std::string& first_line) {
  ordered_json context{{"cluster", kCluster}, {"user", kUser}};
  ordered_json config;
  config["apiVersion"] = "v1";
  config["kind"] = "Config";
  config["clusters"] = named(kCluster, "cluster", cluster_json(access));
  config["users"] = named(kUser, "user", std::move(user));
  config["contexts"] = named(kContext, "context", std::move(context));
  config["current-context"] = kContext;
  return "# " + first_line + "\n" + config.dump(2) + "\n";
}

}  // namespace

Result<ClusterAccess> parse_kubeconfig(std::string_view text, const fs::path& path) {
  const auto document = TRY(yaml::parse(text, path.string()));
  auto access = TRY(Reader(document, path.parent_path()).read());
  access.files.insert(access.files.begin(), path);
  return access;
}

Result<ClusterAccess> load_kubeconfig(const fs::path& path) {
  const auto text = read_file(path);
  if (!text) {
    return text.error().with_prefix("kubeconfig");
  }
  return parse_kubeconfig(*text, path);
}

std::string node_kubeconfig_text(const ClusterAccess& access, const std::string& node_name,
                                 const fs::path& certificate_and_key) {
  // A relative path would be resolved against the kubeconfig's folder.
  std::error_code ignored;
  const auto absolute = fs::absolute(certificate_and_key, ignored);
  const std::string pair = (ignored ? certificate_and_key : absolute).string();
  ordered_json user{{"client-certificate", pair}, {"client-key", pair}};
  return kubeconfig_text(access, std::move(user),
                         "Written by slurmlet when it bootstrapped node " + node_name + ".");
}

std::string token_kubeconfig_text(const ClusterAccess& access, const std::string& token,
                                  const std::string& first_line) {
  ordered_json user;
  user["token"] = token;
  return kubeconfig_text(access, std::move(user), first_line);
}

}  // namespace slurmlet::kube
