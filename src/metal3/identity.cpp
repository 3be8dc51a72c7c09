#include "metal3/identity.h"

#include <fmt/format.h>

#include <utility>

#include "metal3/metadata.h"

namespace slurmlet::metal3 {
namespace {

// The facts of one source; what it refuses, and errors other than "not there", become notes.
std::optional<node::Metal3Facts> accept(Result<Reading> reading, std::vector<Note>& notes) {
  if (!reading) {
    if (reading.error().code != Code::kNotFound) {
      notes.push_back({Note::Kind::kProblem, reading.error().message});
    }
    return std::nullopt;
  }
  for (std::string& note : reading->notes) {
    notes.push_back({Note::Kind::kProblem, std::move(note)});
  }
  return std::move(reading->facts);
}

std::optional<node::Metal3Facts> from_metadata(const Paths& paths, std::vector<Note>& notes) {
  if (auto facts = accept(read_instance_data(paths.instance_data), notes)) {
    return facts;
  }
  return accept(read_config_drive(paths), notes);
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

bool is_other_machine(const SavedState& saved, const node::Metal3Facts& facts) {
  const bool both_metal3 = saved.provider_id.starts_with("metal3://") && !facts.provider_id.empty();
  return saved.uuid != facts.uuid || (both_metal3 && saved.provider_id != facts.provider_id);
}

std::string describe(const std::string& uuid, const std::string& provider_id) {
  return provider_id.empty() ? "uuid " + uuid : fmt::format("uuid {}, {}", uuid, provider_id);
}

void merge_saved(const Paths& paths, StateUse use, const SavedState& saved,
                 Resolution& resolution) {
  node::Metal3Facts& facts = *resolution.facts;
  if (!is_other_machine(saved, facts)) {
    if (facts.provider_id.empty()) {
      facts.provider_id = saved.provider_id;
    }
    return;
  }
  resolution.reprovisioned = true;
  resolution.notes.push_back(
      {Note::Kind::kReprovisioned,
       fmt::format(
           "this host was reprovisioned: it was {} and is now {}; the saved state is discarded",
           describe(saved.uuid, saved.provider_id), describe(facts.uuid, facts.provider_id))});
  if (use == StateUse::kLook) {
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
}

}  // namespace

Resolution resolve(const Paths& paths, StateUse use) {
  Resolution resolution;
  resolution.facts = from_metadata(paths, resolution.notes);
  const auto saved = from_state_dir(paths, use, resolution.notes);
  if (resolution.facts && saved) {
    merge_saved(paths, use, *saved, resolution);
  } else if (saved) {
    use_saved(paths, *saved, resolution);
  } else if (!resolution.facts) {
    resolution.notes.push_back(
        {Note::Kind::kNoMetadata,
         fmt::format("no Metal3 metadata (neither {} nor a config drive): the Node works, but "
                     "Cluster API will not match it to a Machine",
                     paths.instance_data.string())});
  }
  return resolution;
}

}  // namespace slurmlet::metal3
