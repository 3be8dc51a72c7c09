#include "metal3/identity.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/detached_task.h"
#include "metal3/metadata.h"

namespace slurmlet::metal3 {
namespace {

// In this boot, since the directory is in /run. cloud-init may run without leaving instance data.
bool cloud_init_ran(const Paths& paths) {
  const auto is_there = [](const std::filesystem::path& file) {
    touches_file(file.string());
    std::error_code unknown;
    return std::filesystem::exists(file, unknown) || unknown;
  };
  return is_there(paths.instance_data) ||
         is_there(paths.instance_data.parent_path() / "status.json");
}

Result<Reading> read_metadata(const Paths& paths) {
  return cloud_init_ran(paths) ? read_instance_data(paths.instance_data) : read_config_drive(paths);
}

std::optional<SavedState> from_state_dir(const Paths& paths, StateUse use,
                                         std::vector<Note>& notes) {
  auto saved = load_state(paths.state_dir, use);
  if (!saved) {
    notes.push_back({Note::Kind::kProblem, saved.error().message});
    return std::nullopt;
  }
  return *std::move(saved);
}

// The saved metadata, completed by the Node's values; a file of 0.1.0 has only these.
MachineId id_of(const SavedState& saved) {
  MachineId then = saved.metadata.value_or(MachineId{saved.uuid, ""});
  if (then.provider_id.empty()) {
    then.provider_id = saved.provider_id;
  }
  return then;
}

bool is_other_machine(const SavedState& saved, const node::Metal3Facts& facts) {
  const MachineId then = id_of(saved);
  if (then.uuid.empty()) {
    return false;  // there was no metadata
  }
  const bool both_metal3 = then.provider_id.starts_with("metal3://") && !facts.provider_id.empty();
  return then.uuid != facts.uuid || (both_metal3 && then.provider_id != facts.provider_id);
}

std::string describe(const std::string& uuid, const std::string& provider_id) {
  return provider_id.empty() ? "uuid " + uuid : fmt::format("uuid {}, {}", uuid, provider_id);
}

void merge_saved(const Paths& paths, StateUse use, const SavedState& saved,
                 Resolution& resolution) {
  node::Metal3Facts& facts = *resolution.facts;
  if (!is_other_machine(saved, facts)) {
    if (facts.provider_id.empty() && saved.uuid == facts.uuid) {
      facts.provider_id = saved.provider_id;
    }
    return;
  }
  const MachineId then = id_of(saved);
  resolution.reprovisioned = true;
  resolution.notes.push_back(
      {Note::Kind::kReprovisioned,
       fmt::format(
           "this host was reprovisioned: it was {} and is now {}; the saved state is discarded",
           describe(then.uuid, then.provider_id), describe(facts.uuid, facts.provider_id))});
  if (use == StateUse::kReadOnly) {
    return;
  }
  if (const auto discarded = discard_state(paths.state_dir); !discarded) {
    resolution.notes.push_back({Note::Kind::kProblem, discarded.error().message});
  }
}

void use_saved(const Paths& paths, const SavedState& saved, Resolution& resolution) {
  node::Metal3Facts facts;
  facts.uuid = saved.uuid;
  facts.provider_id = saved.provider_id;
  facts.node_name = saved.node_name;
  facts.source = (paths.state_dir / "metal3.json").string();
  resolution.notes.push_back(
      {Note::Kind::kNoMetadata,
       fmt::format("no Metal3 metadata on this boot; identity taken from {}", facts.source)});
  resolution.facts = std::move(facts);
  resolution.metadata = saved.metadata;
}

// Adds notes for rejected values and errors other than kNotFound. Returns whether this boot has
// metadata, of any cloud.
bool take_metadata(const Paths& paths, Resolution& resolution) {
  auto reading = read_metadata(paths);
  if (!reading) {
    if (reading.error().code != Code::kNotFound) {
      resolution.notes.push_back({Note::Kind::kProblem, reading.error().message});
    }
    return false;
  }
  for (std::string& note : reading->notes) {
    resolution.notes.push_back({Note::Kind::kProblem, std::move(note)});
  }
  resolution.facts = std::move(reading->facts);
  if (resolution.facts) {
    resolution.metadata = MachineId{resolution.facts->uuid, resolution.facts->provider_id};
  }
  return true;
}

std::string without_metadata(const Paths& paths, bool is_other_cloud) {
  constexpr const char* kEffect = "the Node works, but Cluster API will not match it to a Machine";
  if (!is_other_cloud) {
    return fmt::format("no Metal3 metadata (neither {} nor a config drive): {}",
                       paths.instance_data.string(), kEffect);
  }
  return fmt::format(
      "{} is not of Metal3 (it lacks uuid, metal3-name or metal3-namespace): {}; on a Metal3 host "
      "without them set node.metal3UUID and node.providerID",
      cloud_init_ran(paths) ? paths.instance_data.string() : "the config drive", kEffect);
}

}  // namespace

Resolution resolve(const Paths& paths, StateUse use) {
  Resolution resolution;
  const bool has_metadata = take_metadata(paths, resolution);
  const auto saved = from_state_dir(paths, use, resolution.notes);
  if (resolution.facts && saved) {
    merge_saved(paths, use, *saved, resolution);
  } else if (saved && !has_metadata) {
    use_saved(paths, *saved, resolution);
  } else if (!resolution.facts) {
    resolution.notes.push_back({Note::Kind::kNoMetadata, without_metadata(paths, has_metadata)});
  }
  return resolution;
}

}  // namespace slurmlet::metal3
