#pragma once

// Metadata by cloud-init 25.3 and the Bare Metal Operator for a Metal3 host whose
// Metal3DataTemplate has name, local-hostname and local_hostname.

namespace slurmlet::metal3::samples {

inline constexpr const char* kUuid = "2d55eb75-ed44-431e-9898-e26241198918";

inline constexpr const char* kInstanceData = R"json({
 "base64_encoded_keys": [],
 "sensitive_keys": ["merged_cfg", "merged_system_cfg"],
 "merged_cfg": "redacted for non-root user",
 "sys_info": {},
 "ds": {
  "_doc": "EXPERIMENTAL: The structure and format of content scoped under the 'ds' key may change",
  "ec2_metadata": {},
  "network_json": {
   "links": [{"id": "enp1s0", "type": "phy", "ethernet_mac_address": "00:5c:52:31:3a:9c"}],
   "networks": [
    {"id": "prov", "type": "ipv4", "link": "enp1s0", "ip_address": "172.22.0.101",
     "netmask": "255.255.255.0"},
    {"id": "dhcp", "type": "ipv4_dhcp", "link": "enp2s0"},
    {"id": "six", "type": "ipv6", "link": "enp1s0", "ip_address": "fd00:1::65/64"},
    {"id": "again", "type": "ipv4", "link": "enp3s0", "ip_address": "172.22.0.101"}],
   "services": []},
  "meta_data": {
   "instance-id": "2d55eb75-ed44-431e-9898-e26241198918",
   "uuid": "2d55eb75-ed44-431e-9898-e26241198918",
   "name": "hpc-8lfpj-759d9",
   "local-hostname": "hpc-8lfpj-759d9",
   "local_hostname": "hpc-8lfpj-759d9",
   "metal3-name": "node-4",
   "metal3-namespace": "metal3",
   "rack": "r1",
   "providerid": "metal3/node-4/hpc-8lfpj-759d9"}},
 "v1": {"cloud_name": "configdrive", "cloud_id": "configdrive", "platform": "configdrive",
  "instance_id": "2d55eb75-ed44-431e-9898-e26241198918", "local_hostname": "hpc-8lfpj-759d9",
  "subplatform": "config-disk (/dev/sda4)"}
})json";

inline constexpr const char* kMetaData =
    R"({"uuid":"2d55eb75-ed44-431e-9898-e26241198918","metal3-namespace":"metal3",)"
    R"("metal3-name":"node-4","local-hostname":"hpc-8lfpj-759d9","local_hostname":"hpc-8lfpj-759d9",)"
    R"("name":"hpc-8lfpj-759d9","providerid":"metal3/node-4/hpc-8lfpj-759d9","rack":"r1"})";

inline constexpr const char* kNetworkData =
    R"({"links":[],"networks":[{"id":"p","type":"ipv4","ip_address":"172.22.0.101"}]})";

}  // namespace slurmlet::metal3::samples
