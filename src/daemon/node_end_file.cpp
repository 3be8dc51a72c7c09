#include "daemon/node_end_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "base/side_call.h"
#include "kube/json_read.h"

namespace slurmlet::daemon {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

constexpr std::size_t kMaxEndBytes = 16384;

std::filesystem::path end_file(const EndScope& scope) {
  return std::filesystem::path{scope.state_dir} / "node-end.json";
}

// What this machine does not know now (metadata that is away) is no other identity.
bool is_new(const std::string& now, const std::string& saved) {
  return !now.empty() && now != saved;
}

bool is_of(const Json& document, const EndScope& scope) {
  const auto text = [&document](const char* key) { return kube::string_at(document, key); };
  return !scope.boot_id.empty() && text("bootID") == scope.boot_id &&
         text("nodeName") == scope.node_name && !is_new(scope.metal3_uuid, text("metal3UUID")) &&
         !is_new(scope.provider_id, text("providerID")) &&
         !is_new(scope.credential, text("credential"));
}

}  // namespace

Result<std::optional<node::NodeEnd>> load_node_end(const EndScope& scope, SteadyTime now) {
  const auto text = read_file(end_file(scope), kMaxEndBytes);
  if (!text) {
    return text.error().code == Code::kNotFound
               ? Result<std::optional<node::NodeEnd>>{std::optional<node::NodeEnd>{}}
               : text.error();
  }
  const Json document = Json::parse(*text, nullptr, false);
  if (!document.is_object() || kube::string_at(document, "nodeUID").empty()) {
    return Error{Code::kInvalid, end_file(scope).string() +
                                     " is broken; slurmlet continues without it: if the Node was "
                                     "deleted with its Machine, it is registered again"};
  }
  if (!is_of(document, scope)) {
    return std::optional<node::NodeEnd>{};
  }
  node::NodeEnd end{kube::string_at(document, "nodeUID"), kube::string_at(document, "machine"),
                    kube::bool_at(document, "detached")};
  if (const auto gone = kube::int_at(document, "goneAtMilliseconds"); gone && *gone >= 0) {
    end.gone_at = std::min(SteadyTime{milliseconds{*gone}}, now);  // never later than now
    end.deleted_at = kube::string_at(document, "deletedAt");
  }
  return std::optional{std::move(end)};
}

Status save_node_end(const EndScope& scope, const std::optional<node::NodeEnd>& end) {
  const auto file = end_file(scope);
  if (!end || scope.boot_id.empty()) {
    touches_file(file.native());
    std::error_code error;
    std::filesystem::remove(file, error);
    return error ? Status{errno_error(error.value(), "remove " + file.string())} : Status{};
  }
  Json document{{"bootID", scope.boot_id},         {"nodeName", scope.node_name},
                {"metal3UUID", scope.metal3_uuid}, {"providerID", scope.provider_id},
                {"credential", scope.credential},  {"nodeUID", end->uid},
                {"machine", end->machine},         {"detached", end->detached}};
  if (end->gone_at) {
    document["goneAtMilliseconds"] =
        std::chrono::duration_cast<milliseconds>(end->gone_at->time_since_epoch()).count();
    document["deletedAt"] = end->deleted_at;
  }
  return write_file_atomic(
      file, document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", 0600);
}

}  // namespace slurmlet::daemon
