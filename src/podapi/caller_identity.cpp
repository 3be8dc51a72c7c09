#include "podapi/caller_identity.h"

#include <algorithm>

#include "base/text.h"

namespace slurmlet::podapi {
namespace {

constexpr const char* kAuthenticated = "system:authenticated";
constexpr const char* kUnauthenticated = "system:unauthenticated";
constexpr const char* kAnonymous = "system:anonymous";

bool is_visible_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace

void add_authenticated_group(kube::UserInfo& user) {
  const bool says_already =
      std::any_of(user.groups.begin(), user.groups.end(), [](const std::string& group) {
        return group == kAuthenticated || group == kUnauthenticated;
      });
  if (user.name != kAnonymous && !says_already) {
    user.groups.emplace_back(kAuthenticated);
  }
}

std::optional<kube::UserInfo> certificate_user(const Caller& caller, WallTime now) {
  if (!caller.certificate || caller.certificate->common_name.empty() ||
      now > caller.certificate->not_after) {
    return std::nullopt;
  }
  kube::UserInfo user;
  user.name = caller.certificate->common_name;
  user.groups = caller.certificate->organizations;
  add_authenticated_group(user);
  return user;
}

std::optional<std::string> bearer_token(const RequestHead& head) {
  const auto header = head.header("authorization");
  if (!header) {
    return std::nullopt;
  }
  // The second word, as the API server's authenticator reads it; what follows is ignored there too.
  const auto words = split(trim(*header), ' ');
  if (words.size() < 2 || to_lower(words[0]) != "bearer" || words[1].empty() ||
      !is_visible_ascii(words[1])) {
    return std::nullopt;
  }
  return std::string{words[1]};
}

}  // namespace slurmlet::podapi
