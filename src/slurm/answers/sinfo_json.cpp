// `sinfo --json` since 23.02 (SINFO_DATA of Slurm's data_parser). The groups are those of sinfo's
// default table: by partition and by the one word for the state. Everything else that is not a
// range is that of the group's first node only, and counts for a node where it is the only one.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "slurm/answers/gres.h"
#include "slurm/answers/hostlist.h"
#include "slurm/answers/node_json_record.h"
#include "slurm/answers/sinfo.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kKnown =
    "cluster comment cores cpus disk extra features gres memory node nodes partition port reason "
    "reason_set_by_user reservation resource_spec sockets threads weight";

class Group {
 public:
  Group(const Json& object, std::string path, Notes& notes)
      : object_{object}, path_{std::move(path)}, notes_{notes} {}

  std::vector<std::string> names() const;
  // All that the group tells of each of its `size` nodes.
  node::SlurmNodeRecord record(std::size_t size) const;
  void note_unknown() const;

 private:
  Fields part(const char* key) const { return of(json_member(object_, key)); }
  Fields part(const char* key, const char* inner) const {
    const auto* outer = json_member(object_, key);
    return of(outer == nullptr ? nullptr : json_member(*outer, inner));
  }
  Fields of(const Json* object) const {
    static const Json none;
    return {object == nullptr ? none : *object, path_, notes_};
  }
  void set_only_node(node::SlurmNodeRecord& record) const;

  const Json& object_;
  std::string path_;
  Notes& notes_;
};

// A figure that all nodes of the group share.
std::optional<std::int64_t> common(const Fields& range) {
  const auto least = range.number({"minimum"});
  return least == range.number({"maximum"}) ? least : std::nullopt;
}

std::vector<std::string> Group::names() const {
  std::vector<std::string> names;
  for (const auto& element : part("nodes").words({"nodes"})) {
    auto expanded = expand_hostlist(element);
    if (!expanded || names.size() + expanded->size() > kMaxRecords ||
        !std::all_of(expanded->begin(), expanded->end(), valid_node_name)) {
      notes_.add(path_ + ".nodes.nodes", element);
      continue;
    }
    names.insert(names.end(), expanded->begin(), expanded->end());
  }
  return names;
}

void Group::set_only_node(node::SlurmNodeRecord& record) const {
  const Fields group = of(&object_);
  record.allocated_cpus = part("cpus").number({"allocated"});
  record.allocated_memory_mib = part("memory").number({"allocated"});
  record.mem_spec_limit_mib = part("resource_spec").number({"memory"});
  record.gres = parse_gres(part("gres").text({"total"}));
  record.gres_used = parse_gres(part("gres").text({"used"}));
  record.features = part("features").words({"total"});
  record.active_features = part("features").words({"active"});
  record.comment = group.text({"comment"});
  record.extra = group.text({"extra"});
  record.reservation = group.text({"reservation"});
  record.reason = part("reason").text({"description"});
  if (!record.reason.empty()) {
    record.reason_user = part("reason").text({"user"});
    if (record.reason_user.empty()) {
      record.reason_user = group.text({"reason_set_by_user"});
    }
    record.reason_time = part("reason").time({"time"});
  }
}

node::SlurmNodeRecord Group::record(std::size_t size) const {
  node::SlurmNodeRecord record;
  record.state = state_of(part("node"), {"state"}, {});
  record.cpus = common(part("cpus"));
  record.real_memory_mib = common(part("memory"));
  record.free_memory_mib = common(part("memory", "free"));
  record.cpu_load = Fields::load(common(part("cpus", "load")), record.free_memory_mib);
  record.cluster = of(&object_).text({"cluster"});
  if (auto partition = part("partition").text({"name"}); !partition.empty()) {
    record.partitions.push_back(std::move(partition));
  }
  if (size == 1) {
    set_only_node(record);
  }
  return record;
}

void Group::note_unknown() const {
  for (const auto& [key, value] : object_.items()) {
    if (!has_word(kKnown, key)) {
      notes_.add(path_ + "." + key);
    }
  }
}

}  // namespace

std::vector<node::SlurmNodeRecord> sinfo_records(const Json& groups, Notes& notes) {
  std::vector<node::SlurmNodeRecord> records;
  std::map<std::string, std::size_t> index;  // of the record of a name
  for (std::size_t i = 0; i < groups.size() && records.size() < kMaxRecords; ++i) {
    std::string path = "sinfo[" + std::to_string(i) + "]";
    if (!groups[i].is_object()) {
      notes.add(path, groups[i].type_name());
      continue;
    }
    const Group group{groups[i], std::move(path), notes};
    const auto names = group.names();
    if (names.empty()) {
      continue;  // the first group of every release is an UNKNOWN of no node
    }
    group.note_unknown();
    auto told = group.record(names.size());
    for (const auto& name : names) {
      const auto [at, is_new] = index.emplace(name, records.size());
      if (is_new) {
        told.name = name;
        records.push_back(told);
        continue;
      }
      auto& known = records[at->second].partitions;
      for (const auto& partition : told.partitions) {
        if (std::find(known.begin(), known.end(), partition) == known.end()) {
          known.push_back(partition);
        }
      }
    }
  }
  return records;
}

}  // namespace slurmlet::slurm
