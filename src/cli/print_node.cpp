#include "cli/print_node.h"

#include <nlohmann/json.hpp>

#include "daemon/node_preview.h"
#include "kube/object_json.h"

namespace slurmlet::cli {

Result<std::string> print_node(const config::Settings& settings) {
  const auto preview = TRY(daemon::preview_node(settings, {}));
  const std::string json = kube::node_create_body(preview.desired, preview.at.wall);
  return nlohmann::ordered_json::parse(json).dump(2) + "\n";
}

}  // namespace slurmlet::cli
