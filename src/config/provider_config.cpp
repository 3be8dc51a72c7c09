#include "config/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/rules.h"
#include "node/vocabulary.h"
#include "yaml/document.h"

namespace slurmlet::config {
namespace {

// Slurm and the machine have others, which are published.
constexpr std::string_view kResources[] = {"cpu", "memory", "pods", "others"};

// Gives a setting the value of `value`, unless flag or file already gave it another.
void take(std::string_view key, const yaml::Document& document, const yaml::Value& value,
          Draft& draft) {
  const Row& row = *find_row(key);
  const std::string current = value_text(row, draft.settings);
  if (draft.is_set(key) && !current.empty() && current != value.text()) {
    draft.add_problem(fmt::format("{}: {} is \"{}\", but {} is \"{}\"; remove one of them",
                                  document.where(value), key, value.text(), draft.name_of(key),
                                  current));
  } else {
    draft.set_yaml(row, document, value);
  }
}

void take_labels(const yaml::Document& document, const yaml::Value& labels, Draft& draft) {
  if (!labels.is_map()) {
    draft.add_problem(document.where(labels) + ": labels must be a map of texts");
    return;
  }
  for (const auto& [key, value] : labels.entries()) {
    if (key == node::vocabulary::kLabelMetal3Uuid) {
      take("node.metal3UUID", document, value, draft);
    } else if (!value.is_scalar() || value.kind() == yaml::Kind::kBool) {
      draft.add_problem(fmt::format("{}: label \"{}\" must be text", document.where(value), key));
    } else if (const auto wrong = label_problem(key, value.text())) {
      draft.add_problem(fmt::format("{}: labels {}", document.where_key(value), *wrong));
    } else {
      draft.settings.node.labels.emplace(key, value.text());
    }
  }
}

void take_entry(const yaml::Document& document, const yaml::Value& entry, Draft& draft) {
  for (const auto& [key, value] : entry.entries()) {
    if (key == "labels") {
      take_labels(document, value, draft);
    } else if (key == "providerID") {
      take("node.providerID", document, value, draft);
    } else if (std::ranges::find(kResources, key) == std::end(kResources)) {
      draft.add_problem(fmt::format("{}: unknown key \"{}\"", document.where_key(value), key));
    }
  }
}

}  // namespace

void apply_provider_config(std::string_view text, const std::string& file_name, Draft& draft) {
  const auto document = yaml::parse(text, file_name);
  if (!document) {
    draft.add_problem(document.error().message);
    return;
  }
  const yaml::Value& root = document->root();
  if (!root.is_map()) {
    draft.add_problem(fmt::format("{}: it must be a JSON object with an entry for each node",
                                  document->where(root)));
    return;
  }
  const std::string& name = draft.settings.node.name;
  if (name.empty()) {
    draft.add_problem(
        "--provider-config has an entry for each node name; give this node's as --nodename");
    return;
  }
  const yaml::Value* entry = root.find(name);
  if (entry == nullptr) {
    draft.add_problem(fmt::format(
        "{}: no entry for node \"{}\"; its first is for \"{}\": give the same name as --nodename",
        document->where(root), name, root.entries().empty() ? "" : root.entries()[0].first));
  } else if (!entry->is_map()) {
    draft.add_problem(
        fmt::format("{}: the entry of \"{}\" must be an object", document->where(*entry), name));
  } else {
    take_entry(*document, *entry, draft);
  }
}

}  // namespace slurmlet::config
