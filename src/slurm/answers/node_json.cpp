#include "slurm/answers/node_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/node_json_failure.h"
#include "slurm/answers/node_json_record.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {
namespace {

using Json = nlohmann::json;
using node::SlurmFailure;

// Slurm's own documents are about six deep; a tower of brackets must not cost memory or stack.
bool too_deep(std::string_view text) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '{' || c == '[') && ++depth > kDeepest) {
      return true;
    } else if (!in_string && (c == '}' || c == ']')) {
      --depth;
    }
  }
  return false;
}

std::optional<Json> parse_object(std::string_view body) {
  const auto text = trim(body);
  if (!text.starts_with('{') || too_deep(text)) {
    return std::nullopt;
  }
  // A reason may hold any bytes, and slurmrestd passes them on.
  auto json = Json::parse(valid_utf8(text), nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? std::optional{std::move(json)} : std::nullopt;
}

const Json& member(const Json& object, const char* key) {
  static const Json none;
  const auto* value = json_member(object, key);
  return value == nullptr ? none : *value;
}

std::string string_member(const Json& object, const char* key) {
  const auto& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

// "data_parser/v0.0.44", "openapi/v0.0.38" → "v0.0.44", "v0.0.38"
std::string api_version(std::string_view text) {
  const auto at = text.find("v0.0.");
  if (at == std::string_view::npos) {
    return "";
  }
  const auto end = text.find_first_not_of("0123456789", at + 5);
  return std::string{text.substr(at, end == std::string_view::npos ? end : end - at)};
}

// Parts of a version are numbers before 23.11, then strings ("11", "05").
std::string version_part(const Json& version, const char* key) {
  const auto& part = member(version, key);
  if (part.is_number_unsigned()) {
    return fmt::format("{:02}", part.get<std::uint64_t>());
  }
  return part.is_string() ? part.get<std::string>() : "";
}

std::string slurm_release(const Json& slurm) {
  if (auto release = string_member(slurm, "release"); !release.empty()) {
    return plain_text(release, 64);
  }
  const auto& version = member(slurm, "version");
  const auto major = version_part(version, "major");
  const auto minor = version_part(version, "minor");
  const auto micro = version_part(version, "micro");
  const bool whole = !major.empty() && !minor.empty() && !micro.empty();
  return whole ? plain_text(fmt::format("{}.{}.{}", major, minor, micro), 64) : "";
}

void read_meta(const Json& json, NodesAnswer& answer) {
  const auto& meta = member(json, "meta");
  const auto& plugin = member(meta, "plugin");
  for (const auto& text : {string_member(plugin, "data_parser"), string_member(plugin, "type")}) {
    if (answer.api_version.empty()) {
      answer.api_version = api_version(text);
    }
  }
  const auto& slurm =
      member(meta, "slurm").is_object() ? member(meta, "slurm") : member(meta, "Slurm");
  answer.slurm_version = slurm_release(slurm);
  answer.cluster = plain_text(string_member(slurm, "cluster"), 256);
}

// Only those that are not another node's: junk must not grow into records.
std::vector<node::SlurmNodeRecord> node_records(const Json& list, Notes& notes) {
  std::vector<node::SlurmNodeRecord> records;
  for (std::size_t i = 0; i < list.size() && records.size() < kMaxRecords; ++i) {
    const auto path = fmt::format("nodes[{}]", i);
    if (valid_node_name(string_member(list[i], "name"))) {
      records.push_back(node_record(list[i], path, notes));
    } else {
      notes.add(path, "no node name");
    }
  }
  return records;
}

QueryFailure no_records(const Json& list, const std::vector<SlurmError>& errors, bool had_names,
                        std::string_view body) {
  if (!errors.empty()) {
    return classify_errors(errors);
  }
  if (!list.is_array()) {
    return classify_body(0, body);
  }
  return had_names ? QueryFailure{SlurmFailure::kInvalidResponse, "records without a node name"}
                   : QueryFailure{SlurmFailure::kNotInSlurm, "the answer contains no nodes"};
}

void read_records(const Json& json, std::string_view body, NodesAnswer& answer) {
  Notes notes;
  const auto errors = slurm_errors(json);
  answer.last_update = Fields{json, "", notes}.number({"last_update"});
  const auto& list = member(json, "nodes");
  if (list.is_array()) {
    answer.nodes = node_records(list, notes);
  }
  for (const auto& error : errors) {
    notes.add("errors", error.text + " " + error.description);
  }
  if (answer.nodes.empty()) {
    answer.failure = no_records(list, errors, !list.empty(), body);
    answer.no_nodes = list.is_array() && list.empty() && errors.empty();
  }
  for (auto& record : answer.nodes) {
    if (record.cluster.empty()) {
      record.cluster = answer.cluster;
    }
  }
  answer.not_understood = notes.take();
}

}  // namespace

NodesAnswer parse_nodes_json(std::string_view body, int http_status) {
  NodesAnswer answer;
  const auto json = parse_object(body);
  const bool failing = http_status != 0 && (http_status < 200 || http_status > 299);
  if (!json) {
    answer.failure = classify_body(http_status, body);
    return answer;
  }
  read_meta(*json, answer);
  if (failing) {
    const auto errors = slurm_errors(*json);
    const bool by_status = errors.empty() || http_status == 401;
    answer.failure = by_status ? classify_body(http_status, body) : classify_errors(errors);
  } else {
    read_records(*json, body, answer);
  }
  return answer;
}

std::optional<node::SlurmNodeRecord> parse_node_json(std::string_view element) {
  const auto json = parse_object(element);
  if (!json || !valid_node_name(string_member(*json, "name"))) {
    return std::nullopt;
  }
  Notes notes;
  auto record = node_record(*json, "node", notes);
  return record;
}

std::optional<std::pair<std::string, std::string>> compact_node_json(std::string_view element) {
  auto json = parse_object(element);
  if (!json) {
    return std::nullopt;
  }
  drop_unpublished(*json);
  return std::pair{string_member(*json, "name"),
                   json->dump(-1, ' ', false, Json::error_handler_t::replace)};
}

}  // namespace slurmlet::slurm
