#include "node/node_info_fields.h"

namespace slurmlet::node {

std::map<std::string, std::string> node_info_fields(const NodeInfo& info) {
  return {{"machineID", info.machine_id},
          {"systemUUID", info.system_uuid},
          {"bootID", info.boot_id},
          {"kernelVersion", info.kernel_version},
          {"osImage", info.os_image},
          {"containerRuntimeVersion", info.container_runtime_version},
          {"kubeletVersion", info.kubelet_version},
          {"kubeProxyVersion", info.kube_proxy_version},
          {"operatingSystem", info.operating_system},
          {"architecture", info.architecture}};
}

}  // namespace slurmlet::node
