#pragma once

// Who a caller says to be, before anybody is asked. Pure.

#include <optional>
#include <string>

#include "base/clock.h"
#include "kube/review_api.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

// The user of a believed client certificate that has not expired since the handshake: name = CN,
// groups = O and system:authenticated. Nothing without one, or without a CN.
std::optional<kube::UserInfo> certificate_user(const Caller& caller, WallTime now);

// The token of "Authorization: Bearer TOKEN"; nothing if there is none, or more than one header.
std::optional<std::string> bearer_token(const RequestHead& head);

// Adds system:authenticated where the API server's authenticators would
// (AuthenticatedGroupAdder in k8s.io/apiserver/pkg/authentication/group).
void add_authenticated_group(kube::UserInfo& user);

}  // namespace slurmlet::podapi
