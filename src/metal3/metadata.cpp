#include "metal3/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text.h"
#include "node/labels.h"

namespace slurmlet::metal3 {
namespace {

// What cloud-init's jinja renderer writes for a variable that does not exist.
constexpr std::string_view kMissingVariable = "CI_MISSING_JINJA_VAR";

std::string value_of(const RawMetadata& raw, const std::string& key) {
  const auto found = raw.values.find(key);
  return found == raw.values.end() ? std::string{} : std::string{trim(found->second)};
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

}  // namespace

Result<Reading> judge(const RawMetadata& raw) {
  const std::string uuid = value_of(raw, "uuid");
  if (uuid.empty()) {
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
  facts.ip_addresses = raw.ip_addresses;
  facts.source = raw.source;
  reading.facts = std::move(facts);
  return reading;
}

}  // namespace slurmlet::metal3
