#include "slurm/answers/node_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/plain_text.h"
#include "base/text.h"
#include "slurm/answers/node_json_failure.h"
#include "slurm/answers/node_json_record.h"
#include "slurm/answers/sinfo.h"

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

// `scontrol --json` has the words of its command line (23.02: another "plugins"); slurmrestd names
// its OpenAPI plugin. `sinfo --json` of 22.05 claims to be slurmrestd. True for a command.
bool read_meta(const Json& json, NodesAnswer& answer) {
  const auto& meta = member(json, "meta");
  const auto& plugin = member(meta, "plugin");
  const auto& plugins = member(meta, "plugins");
  const auto type = string_member(plugin, "type");
  for (const auto& text :
       {string_member(plugin, "data_parser"), string_member(plugins, "data_parser"), type}) {
    if (answer.api_version.empty()) {
      answer.api_version = api_version(text);
    }
  }
  const auto& slurm =
      member(meta, "slurm").is_object() ? member(meta, "slurm") : member(meta, "Slurm");
  answer.slurm_version = slurm_release(slurm);
  answer.cluster = plain_text(string_member(slurm, "cluster"), 256);
  const bool by_rest = type.starts_with("openapi/");
  const auto& command = member(meta, "command");
  const bool has_command = command.is_array() && !command.empty();
  const bool is_client = !string_member(member(meta, "client"), "source").empty();
  const bool by_sinfo = has_command && command.front().is_string() &&
                        command.front().get_ref<const std::string&>().ends_with("sinfo");
  if (by_sinfo || member(json, "sinfo").is_array()) {
    answer.source = "sinfo --json";
  } else if (by_rest || is_client) {
    answer.source = "slurmrestd";
  } else if (meta.is_object()) {
    answer.source = "scontrol show node --json";
  }
  return !by_rest && (has_command || plugins.is_object());
}

// "25.05.4" and later, "25.05.9-branch", "25.11.0-0rc1". Slurm's commit 9568a1c53b.
bool tells_partitions_of_one_node(std::string_view release) {
  const auto parts = split(release, '.');
  if (parts.size() < 3) {
    return false;
  }
  const auto number = [](std::string_view text) {
    return parse_int<int>(text.substr(0, text.find_first_not_of("0123456789"))).value_or(-1);
  };
  return std::tuple{number(parts[0]), number(parts[1]), number(parts[2])} >= std::tuple{25, 5, 4};
}

// Only those that can be told from another node's: junk must not grow into records.
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

bool of_one_node(const std::vector<node::SlurmNodeRecord>& records) {
  return std::all_of(records.begin(), records.end(),
                     [&](const auto& record) { return record.name == records.front().name; });
}

// What the records themselves do not say: how slurmctld was asked. Several nodes, and all that
// scontrol prints, come from a full dump; sinfo about one name asks for that node only.
void set_provenance(NodesAnswer& answer, bool by_command, bool from_sinfo, bool has_errors) {
  const bool one = of_one_node(answer.nodes);
  const bool fresh = !one || (by_command && !from_sinfo);
  const bool wrong_partitions =
      one && !by_command && !tells_partitions_of_one_node(answer.slurm_version);
  for (auto& record : answer.nodes) {
    record.kind = fresh ? node::AnswerKind::kFullDump : node::AnswerKind::kOneNode;
    record.partitions_known = record.partitions_known && !wrong_partitions && !has_errors;
    if (!record.partitions_known) {
      record.partitions.clear();
    }
    if (record.cluster.empty()) {
      record.cluster = answer.cluster;
    }
  }
}

QueryFailure no_records(const Json& list, const std::vector<SlurmError>& errors, bool had_names,
                        std::string_view body) {
  if (!errors.empty()) {
    return classify_errors(errors);
  }
  if (!list.is_array()) {
    return classify_body(0, body);
  }
  return had_names ? QueryFailure{SlurmFailure::kGarbage, "records without a node name"}
                   : QueryFailure{SlurmFailure::kNotInSlurm, "the answer contains no nodes"};
}

void read_records(const Json& json, bool by_command, std::string_view body, NodesAnswer& answer) {
  Notes notes;
  const auto errors = slurm_errors(json);
  const bool from_sinfo = member(json, "sinfo").is_array();
  answer.last_update = Fields{json, "", notes}.number({"last_update"});
  const auto& list = member(json, from_sinfo ? "sinfo" : "nodes");
  if (list.is_array()) {
    answer.nodes = from_sinfo ? sinfo_records(list, notes) : node_records(list, notes);
  }
  for (const auto& error : errors) {
    notes.add("errors", error.text + " " + error.description);
  }
  if (answer.nodes.empty()) {
    answer.failure = no_records(list, errors, !from_sinfo && !list.empty(), body);
    answer.no_nodes = list.is_array() && list.empty() && errors.empty();
  } else {
    set_provenance(answer, by_command, from_sinfo, !errors.empty());
  }
  answer.not_understood = notes.take();
}

QueryResult failed(SlurmFailure cause, std::string detail) {
  return {std::nullopt, QueryFailure{cause, std::move(detail)}, std::nullopt};
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
  const bool by_command = read_meta(*json, answer) && http_status == 0;
  if (failing) {
    const auto errors = slurm_errors(*json);
    const bool by_status = errors.empty() || http_status == 401;
    answer.failure = by_status ? classify_body(http_status, body) : classify_errors(errors);
  } else {
    read_records(*json, by_command, body, answer);
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
  record.kind = node::AnswerKind::kFullDump;
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

QueryResult interpret_rest(int http_status, std::string_view body, std::string_view node) {
  auto answer = parse_nodes_json(body, http_status);
  if (answer.failure) {
    return {std::nullopt, std::move(answer.failure), std::nullopt};
  }
  for (const auto& record : answer.nodes) {
    if (record.name != node) {
      return failed(SlurmFailure::kGarbage,
                    fmt::format("the answer is about node '{}'", record.name));
    }
  }
  auto& record = answer.nodes.front();
  if (record.state.base.empty()) {
    return failed(SlurmFailure::kGarbage, "the answer does not report the node's state");
  }
  return {std::move(record), std::nullopt, std::nullopt};
}

}  // namespace slurmlet::slurm
