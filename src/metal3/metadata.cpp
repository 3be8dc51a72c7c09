#include "metal3/metadata.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "node/labels.h"

namespace slurmlet::metal3 {
namespace {

using Json = nlohmann::json;

// cloud-init's jinja renderer writes this for an undefined variable.
constexpr std::string_view kMissingVariable = "CI_MISSING_JINJA_VAR";

struct RawMetadata {
  const Json& meta_data;
  const Json& network_data;
  const std::string& source;  // file or device, for messages
};

// The member, or null if `object` is no object or has no such member.
const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) {
    return kNull;
  }
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

bool is_ip_address(const std::string& text) {
  in6_addr buffer{};  // large enough for either family
  return ::inet_pton(AF_INET, text.c_str(), &buffer) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &buffer) == 1;
}

// networks[].ip_address, missing for DHCP, may have a prefix length ("10.0.0.5/24").
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

std::string value_of(const RawMetadata& raw, const char* key) {
  const Json& value = member(raw.meta_data, key);
  return value.is_string() ? std::string{trim(value.get_ref<const std::string&>())} : std::string{};
}

std::string missing_variable_message(const RawMetadata& raw, const std::string& key) {
  return fmt::format(
      "{}: {} is \"{}…\": a template used a variable that the metadata lacks. Add the key to "
      "spec.metaData of the Metal3DataTemplate and reprovision the host",
      raw.source, key, kMissingVariable);
}

bool is_provider_path(std::string_view text) {
  const auto parts = split(text, '/');
  return parts.size() == 3 && std::all_of(parts.begin(), parts.end(), node::is_rfc1123_subdomain);
}

std::string provider_id(const RawMetadata& raw, std::vector<std::string>& notes) {
  const std::string value = value_of(raw, "providerid");
  if (value.empty()) {
    return {};
  }
  if (value.starts_with(kMissingVariable)) {
    notes.push_back(missing_variable_message(raw, "providerid"));
    return {};
  }
  if (!is_provider_path(value)) {
    notes.push_back(fmt::format(
        "{}: providerid \"{}\" is ignored: it must be NAMESPACE/BAREMETALHOST/METAL3MACHINE. "
        "Remove the key from spec.metaData of the Metal3DataTemplate: Cluster API's Metal3 "
        "provider adds the right one",
        raw.source, value));
    return {};
  }
  return "metal3://" + value;
}

std::string node_name(const RawMetadata& raw, std::vector<std::string>& notes) {
  for (const char* key : {"name", "local-hostname", "local_hostname"}) {
    const std::string value = value_of(raw, key);
    if (value.empty()) {
      continue;
    }
    if (value.starts_with(kMissingVariable)) {
      notes.push_back(missing_variable_message(raw, key));
      continue;
    }
    if (std::string name = to_lower(value); node::is_rfc1123_subdomain(name)) {
      return name;
    }
    notes.push_back(fmt::format(
        "{}: {} \"{}\" cannot name a Node (lower-case letters, digits, '-' and '.'). Set "
        "\"- {{key: {}, object: machine}}\" in spec.metaData.objectNames of the "
        "Metal3DataTemplate, or node.name in slurmlet's configuration",
        raw.source, key, value, key));
  }
  return {};
}

// Any OpenStack writes uuid and name, but only the Bare Metal Operator these two.
bool is_metal3(const RawMetadata& raw) {
  return !value_of(raw, "metal3-name").empty() && !value_of(raw, "metal3-namespace").empty();
}

Result<Reading> judge(const RawMetadata& raw) {
  const std::string uuid = value_of(raw, "uuid");
  if (uuid.empty() || !is_metal3(raw)) {
    return Reading{};
  }
  if (uuid.starts_with(kMissingVariable)) {
    return Error{Code::kInvalid, missing_variable_message(raw, "uuid")};
  }
  if (const auto problem = node::label_value_problem(uuid)) {
    return Error{Code::kInvalid,
                 fmt::format("{}: uuid cannot be the label metal3.io/uuid: {}. Remove the key from "
                             "spec.metaData of the Metal3DataTemplate: the Bare Metal Operator "
                             "sets the right one",
                             raw.source, *problem)};
  }
  Reading reading;
  node::Metal3Facts facts;
  facts.uuid = uuid;
  facts.provider_id = provider_id(raw, reading.notes);
  facts.node_name = node_name(raw, reading.notes);
  facts.ip_addresses = static_addresses(raw.network_data);
  facts.source = raw.source;
  reading.facts = std::move(facts);
  return reading;
}

}  // namespace

Result<Reading> parse_instance_data(std::string_view text, const std::string& source) {
  const Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) {
    return Error{Code::kInvalid, fmt::format("{} is not a JSON object. Have cloud-init write it "
                                             "again: `cloud-init init --local` or a reboot",
                                             source)};
  }
  const Json& cloud = member(member(document, "v1"), "cloud_id");
  if (cloud.is_string() && cloud.get_ref<const std::string&>() == "none") {
    return Error{Code::kNotFound, source + ": cloud-init found no data source"};
  }
  const Json& ds = member(document, "ds");
  return judge({member(ds, "meta_data"), member(ds, "network_json"), source});
}

Result<Reading> parse_config_drive(std::string_view meta_data, std::string_view network_data,
                                   const std::string& source) {
  const Json document = Json::parse(meta_data, nullptr, false);
  if (!document.is_object()) {
    return Error{Code::kInvalid,
                 fmt::format("meta_data.json of {} is not a JSON object. The config drive is "
                             "written when the host is provisioned: reprovision it",
                             source)};
  }
  const Json network = Json::parse(network_data, nullptr, false);
  return judge({document, network, source});
}

Result<Reading> read_instance_data(const std::filesystem::path& file) {
  const auto text = TRY(read_file(file));
  return parse_instance_data(text, file.string());
}

}  // namespace slurmlet::metal3
