#include "daemon/lease_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "base/rfc3339.h"
#include "kube/json_read.h"
#include "kube/lease_json.h"

namespace slurmlet::daemon {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxLeaseBytes = 16384;
constexpr const char* kServer = "apiServer";
constexpr const char* kWatch = "nodeWatch";

std::filesystem::path lease_file(const LeaseScope& scope) {
  return std::filesystem::path{scope.state_dir} / "lease.json";
}

}  // namespace

std::optional<LeftLease> take_lease(const LeaseScope& scope, WallTime now) {
  const auto text = read_file(lease_file(scope), kMaxLeaseBytes);
  std::error_code ignored;
  std::filesystem::remove(lease_file(scope), ignored);
  const Json document = text ? Json::parse(*text, nullptr, false) : Json{};
  auto lease = kube::lease_from_json(document);
  if (!lease || kube::string_at(document, kServer) != scope.api_server ||
      lease->name != scope.node_name || lease->holder_identity != scope.holder_identity ||
      lease->resource_version.empty() || lease->owner_node_uid.empty()) {
    return std::nullopt;
  }
  const auto renewed = parse_rfc3339(lease->renew_time);
  if (!renewed || *renewed > now ||
      now - *renewed > std::chrono::seconds{lease->duration_seconds}) {
    return std::nullopt;
  }
  return LeftLease{*std::move(lease), kube::string_at(document, kWatch)};
}

Status leave_lease(const LeaseScope& scope, const LeftLease& left) {
  Json document = Json::parse(kube::lease_body(left.lease), nullptr, false);
  document[kServer] = scope.api_server;
  document[kWatch] = left.watch_from;
  return write_file_atomic(
      lease_file(scope), document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", 0600);
}

}  // namespace slurmlet::daemon
