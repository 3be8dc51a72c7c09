#include "metal3/metadata_json.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace slurmlet::metal3 {
namespace {

using Json = nlohmann::json;

// The member, or null if `object` is no object or has no such member.
const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) {
    return kNull;
  }
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::map<std::string, std::string> strings_of(const Json& object) {
  std::map<std::string, std::string> out;
  if (object.is_object()) {
    for (const auto& [key, value] : object.items()) {
      if (value.is_string()) {
        out.emplace(key, value.get_ref<const std::string&>());
      }
    }
  }
  return out;
}

bool is_ip_address(const std::string& text) {
  in6_addr buffer{};  // large enough for either family
  return ::inet_pton(AF_INET, text.c_str(), &buffer) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &buffer) == 1;
}

// networks[].ip_address; those of DHCP have none. A prefix length may follow ("10.0.0.5/24").
std::vector<std::string> static_addresses(const Json& network_data) {
  std::vector<std::string> out;
  const Json& networks = member(network_data, "networks");
  if (!networks.is_array()) {
    return out;
  }
  for (const Json& network : networks) {
    const Json& value = member(network, "ip_address");
    if (!value.is_string()) {
      continue;
    }
    std::string address = value.get<std::string>();
    address = address.substr(0, address.find('/'));
    if (is_ip_address(address) && std::find(out.begin(), out.end(), address) == out.end()) {
      out.push_back(std::move(address));
    }
  }
  return out;
}

}  // namespace

Result<RawMetadata> from_instance_data(std::string_view text, const std::string& source) {
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) {
    return Error{Code::kInvalid, fmt::format("{} is not a JSON object. Have cloud-init write it "
                                             "again: `cloud-init init --local` or a reboot",
                                             source)};
  }
  const Json& ds = member(document, "ds");
  return RawMetadata{strings_of(member(ds, "meta_data")),
                     static_addresses(member(ds, "network_json")), source};
}

Result<RawMetadata> from_config_drive(std::string_view meta_data, std::string_view network_data,
                                      const std::string& source) {
  const Json document = Json::parse(meta_data, nullptr, false);
  if (!document.is_object()) {
    return Error{Code::kInvalid,
                 fmt::format("meta_data.json of {} is not a JSON object. The config drive is "
                             "written when the host is provisioned: reprovision it",
                             source)};
  }
  return RawMetadata{strings_of(document),
                     static_addresses(Json::parse(network_data, nullptr, false)), source};
}

}  // namespace slurmlet::metal3
