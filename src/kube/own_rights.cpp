#include "kube/own_rights.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/json_read.h"
#include "kube/rest_send.h"
#include "kube/review_json.h"

namespace slurmlet::kube {

using nlohmann::json;

namespace {

Result<UserInfo> user_of_review(const json& object) {
  const json* user = find(member(object, "status"), "userInfo");
  if (user == nullptr) {
    return Error{Code::kInternal, "without a user"};
  }
  return user_from_json(*user);
}

Result<std::string> version_of(const json& object) {
  std::string version = one_line(string_at(object, "gitVersion"));
  if (version.empty()) {
    return Error{Code::kInternal, "without gitVersion"};
  }
  return version;
}

}  // namespace

std::string describe(const OwnRight& right) {
  std::string out = right.verb + " " + right.resource;
  if (!right.group.empty()) {
    out += "." + right.group;
  }
  if (!right.subresource.empty()) {
    out += "/" + right.subresource;
  }
  if (!right.name.empty()) {
    out += " " + (right.namespace_name.empty() ? "" : right.namespace_name + "/") + right.name;
  } else if (!right.field_selector.empty()) {
    out += " with " + right.field_selector;
  } else if (!right.namespace_name.empty()) {
    out += " in " + right.namespace_name;
  }
  return out;
}

std::string own_right_body(const OwnRight& right) {
  json attributes{{"verb", right.verb}, {"resource", right.resource}};
  for (const auto& [key, value] :
       {std::pair{"group", &right.group}, std::pair{"subresource", &right.subresource},
        std::pair{"name", &right.name}, std::pair{"namespace", &right.namespace_name}}) {
    if (!value->empty()) {
      attributes[key] = *value;
    }
  }
  if (!right.field_selector.empty()) {
    attributes["fieldSelector"] = {{"rawSelector", right.field_selector}};
  }
  return to_text({{"apiVersion", "authorization.k8s.io/v1"},
                  {"kind", "SelfSubjectAccessReview"},
                  {"spec", {{"resourceAttributes", std::move(attributes)}}}});
}

Result<AccessReview> review_own_right(http::Client& client, const CallOptions& options,
                                      const OwnRight& right) {
  return send_for(client, options,
                  review_request("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                                 own_right_body(right), kCallTimeout),
                  access_review_from_json);
}

Result<UserInfo> who_am_i(http::Client& client, const CallOptions& options) {
  const json body{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}};
  return send_for(client, options,
                  review_request("/apis/authentication.k8s.io/v1/selfsubjectreviews", to_text(body),
                                 kCallTimeout),
                  user_of_review);
}

Result<std::string> server_version(http::Client& client, const CallOptions& options) {
  return send_for(client, options, {"GET", "/version", "", "", kCallTimeout}, version_of);
}

}  // namespace slurmlet::kube
