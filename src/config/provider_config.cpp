#include "config/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/rules.h"
#include "node/vocabulary.h"
#include "yaml/document.h"

namespace slurmlet::config {
namespace {

// Slurm and the machine have others, which are published.
constexpr std::string_view kResources[] = {"cpu", "memory", "pods", "others"};

class Entry {
 public:
  Entry(const yaml::Document& document, Draft& draft) : document_(document), draft_(draft) {}

  void read(const yaml::Value& entry) {
    for (const auto& [key, value] : entry.entries()) {
      if (key == "labels") {
        labels(value);
      } else if (key == "providerID") {
        take("node.providerID", "providerID", value);
      } else if (std::ranges::find(kResources, key) == std::end(kResources)) {
        unknown_key(key, value);
      }
    }
  }

 private:
  void problem(const std::string& where, const std::string& text) {
    draft_.add_problem(fmt::format("{}: {}", where, text));
  }

  void labels(const yaml::Value& labels) {
    if (!labels.is_map()) {
      problem(document_.where(labels), "labels must be a map of texts");
      return;
    }
    for (const auto& [key, value] : labels.entries()) {
      if (!value.is_scalar() || value.kind() == yaml::Kind::kBool) {
        problem(document_.where(value), fmt::format("label \"{}\" must be text", key));
      } else if (key == node::vocabulary::kLabelMetal3Uuid) {
        take("node.metal3UUID", key, value);
      } else if (const auto wrong = label_problem(key, value.text())) {
        problem(document_.where_key(value), fmt::format("labels {}", *wrong));
      } else {
        draft_.settings.node.labels.emplace(key, value.text());
      }
    }
  }

  // Gives a setting the value of `value`, unless flag or file already gave it another.
  void take(std::string_view key, const std::string& called, const yaml::Value& value) {
    const Row& row = *find_row(key);
    const std::string current = value_text(row, draft_.settings);
    if (draft_.is_set(key) && !current.empty() && current != value.text()) {
      problem(document_.where(value),
              fmt::format("{} is \"{}\", but {} is \"{}\"; remove one of them", called,
                          value.text(), draft_.name_of(key), current));
      return;
    }
    if (!value.is_scalar()) {
      problem(document_.where(value), fmt::format("{} must be text", called));
      return;
    }
    draft_.set_text(row, fmt::format("{}: {}", document_.where(value), called), value.text());
  }

  void unknown_key(const std::string& key, const yaml::Value& value) {
    const auto near = nearest(key, {"cpu", "memory", "pods", "others", "labels", "providerID"});
    problem(document_.where_key(value),
            fmt::format("unknown key \"{}\"{}", key,
                        near ? fmt::format("; did you mean \"{}\"?", *near) : ""));
  }

  const yaml::Document& document_;
  Draft& draft_;
};

std::string no_entry(const yaml::Document& document, const std::string& node_name) {
  const auto& entries = document.root().entries();
  const std::string what =
      fmt::format("{}: no entry for node \"{}\"", document.where(document.root()), node_name);
  if (entries.size() == 1) {
    return fmt::format("{}; the only one is for \"{}\": give the same name as --nodename", what,
                       entries[0].first);
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : entries) {
    names.push_back(name);
  }
  const auto near = nearest(node_name, names);
  return what + (near ? fmt::format("; did you mean \"{}\"?", *near) : "");
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
    draft.add_problem(no_entry(*document, name));
  } else if (!entry->is_map()) {
    draft.add_problem(
        fmt::format("{}: the entry of \"{}\" must be an object", document->where(*entry), name));
  } else {
    Entry{*document, draft}.read(*entry);
  }
}

}  // namespace slurmlet::config
