#include "cli/print_node.h"

#include <nlohmann/json.hpp>

#include "base/try.h"
#include "credentials/access.h"
#include "daemon/node_preview.h"
#include "kube/node_json.h"
#include "kube/rest_api.h"
#include "yaml/emit.h"

namespace slurmlet::cli {

Result<std::string> print_node(const config::Settings& settings, const std::string& format) {
  const auto preview = TRY(daemon::preview_node(settings, {}));
  const std::string json = kube::node_create_body(preview.desired, preview.at.wall);
  if (format == "json") {
    return json + "\n";
  }
  return yaml::emit(nlohmann::ordered_json::parse(json));
}

Result<std::string> diff_node(const config::Settings& settings) {
  const SystemClock clock;
  const auto access = TRY(credentials::ApiAccess::open(settings, clock));
  const auto client = TRY(access.connect());
  daemon::PreviewOptions options;
  options.route = access.route_source();
  kube::RestNodeApi api{*client, {}};
  options.record = [&api](const std::string& name) {
    const auto node = api.get(name);
    return node ? std::optional{node::record_of(*node)} : std::nullopt;
  };
  const auto preview = TRY(daemon::preview_node(settings, options));
  const auto live = api.get(preview.desired.name);
  if (!live) {
    return live.error().code == Code::kNotFound ? Result<std::string>{missing_text(preview.desired)}
                                                : live.error();
  }
  return diff_text(*live, preview.desired, preview.at.wall);
}

}  // namespace slurmlet::cli
