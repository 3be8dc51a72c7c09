#include "config/draft.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/duration.h"
#include "config/removed_settings.h"
#include "config/rules.h"

namespace slurmlet::config {
namespace {

// One overload a type: puts a text (flag, environment, or scalar of the file) into the field.
Problem assign(const Row& row, std::string_view text, std::string& into) {
  if (text.empty() && row.decides_trust) {
    return "is empty; fill it, or remove it";
  }
  auto problem = text.empty() ? std::nullopt : text_problem(row, text);
  if (!problem) {
    into = text.empty() ? default_text(row) : std::string{text};
  }
  return problem;
}

template <typename E>
  requires std::is_enum_v<E>
Problem assign(const Row& row, std::string_view text, E& into) {
  const std::string word = text.empty() ? default_text(row) : std::string{text};
  for (const Word& one : row.words) {
    if (one.text == word) {
      into = static_cast<E>(one.value);
      return std::nullopt;
    }
  }
  if (const auto removal = removal_of(fmt::format("{}: {}", row.key, word)); !removal.empty()) {
    return fmt::format("is \"{}\", which {}", text, removal);
  }
  const auto near = nearest(word, choices(row));
  return fmt::format("is \"{}\"; it must be one of {}{}", text, join(choices(row), ", "),
                     near ? fmt::format("; did you mean \"{}\"?", *near) : "");
}

Problem assign(const Row&, std::string_view text, bool& into) {
  if (text != "true" && text != "false") {
    return fmt::format("is \"{}\"; it must be true or false", text);
  }
  into = text == "true";
  return std::nullopt;
}

Problem assign(const Row& row, std::string_view text, int& into) {
  const auto number = parse_int<std::int64_t>(text);
  if (!number) {
    return fmt::format("is \"{}\"; it must be a whole number", text);
  }
  auto problem = range_problem(row, *number);
  if (!problem) {
    into = static_cast<int>(*number);
  }
  return problem;
}

Problem assign(const Row& row, std::string_view text, Milliseconds& into) {
  const auto duration = parse_duration(text);
  if (!duration) {
    return fmt::format("is \"{}\"; it must be {}{}a duration like 90s, 1m30s or 500ms", text,
                       row.none, row.none.empty() ? "" : ", or ");
  }
  auto problem = range_problem(row, duration->count());
  if (!problem) {
    into = *duration;
  }
  return problem;
}

// The word for no value as well.
Problem assign(const Row& row, std::string_view text, std::optional<Milliseconds>& into) {
  if (text == row.none) {
    into.reset();
    return std::nullopt;
  }
  Milliseconds value{};
  auto problem = assign(row, text, value);
  if (!problem) {
    into = value;
  }
  return problem;
}

Problem assign(const Row& row, std::string_view text, TextMap& into) {
  TextMap map;
  std::vector<std::string> problems;
  for (const auto part : split(text, ',')) {
    const auto equals = part.find('=');
    if (trim(part).empty()) {
      continue;
    }
    if (equals == std::string_view::npos) {
      return fmt::format("has \"{}\"; it must be KEY=VALUE,KEY=VALUE", part);
    }
    const std::string key{trim(part.substr(0, equals))};
    const std::string value{trim(part.substr(equals + 1))};
    if (auto problem = row.entry_rule(key, value)) {
      problems.push_back(*problem);
    } else if (!map.emplace(key, value).second) {
      problems.push_back(fmt::format("has \"{}\" twice", key));
    }
  }
  if (!problems.empty()) {
    return join(problems, "; ");
  }
  into = std::move(map);
  return std::nullopt;
}

// What a scalar of the file must be for a row, as a problem if it is something else.
Problem kind_problem(const Row& row, const yaml::Value& value) {
  using yaml::Kind;
  if (!row.none.empty() && value.text() == row.none) {
    return std::nullopt;
  }
  if (is_bool(row)) {
    return value.kind() == Kind::kBool
               ? std::nullopt
               : Problem{fmt::format("is {}; it must be true or false", to_string(value.kind()))};
  }
  if (is_int(row) && value.kind() != Kind::kInt) {
    return fmt::format("is {}; it must be a whole number", to_string(value.kind()));
  }
  if (is_duration(row) && (!value.is_scalar() || value.kind() == Kind::kBool)) {
    return fmt::format("is {}; it must be a duration like 90s, 1m30s or 500ms",
                       to_string(value.kind()));
  }
  if (is_text(row) && value.kind() == Kind::kBool) {
    return fmt::format("is {}; it must be text: write \"{}\" in quotes", value.text(),
                       value.text());
  }
  if (is_text(row) && !value.is_scalar()) {
    return fmt::format("is {}; it must be text", to_string(value.kind()));
  }
  return std::nullopt;
}

std::string scalar_text(const yaml::Value& value) {
  // 0x10 and +5 are whole numbers of YAML that parse_int does not know.
  const auto whole = value.as_int();
  const auto flag = value.as_bool();
  if (flag) {
    return *flag ? "true" : "false";
  }
  return whole && !parse_int<std::int64_t>(value.text()) ? std::to_string(*whole) : value.text();
}

}  // namespace

std::string Draft::name_of(std::string_view key) const {
  const auto found = names_.find(key);
  return found == names_.end() ? std::string{key} : found->second;
}

void Draft::set_text(const Row& row, const std::string& name, std::string_view text) {
  const auto problem =
      std::visit([&](auto field) { return assign(row, text, field(settings)); }, row.field);
  if (problem) {
    add_problem(fmt::format("{} {}", name, *problem));
  }
  set_name(row.key, name);
}

void Draft::reset(const Row& row) {
  Settings defaults;
  std::visit([&](auto field) { field(settings) = field(defaults); }, row.field);
  names_.erase(std::string{row.key});
}

void Draft::set_yaml(const Row& row, const yaml::Document& document, const yaml::Value& value) {
  const bool is_blank = value.is_scalar() && value.text().empty();
  if (value.is_null() && !(is_blank && row.decides_trust)) {
    return reset(row);
  }
  if (is_blank && is_text(row) && !row.decides_trust) {
    return;
  }
  if (is_map(row)) {
    set_yaml_map(row, document, value);
    return;
  }
  const std::string name = fmt::format("{}: {}", document.where(value), row.key);
  if (const auto problem = kind_problem(row, value)) {
    add_problem(fmt::format("{} {}", name, *problem));
    return;
  }
  // Texts are taken as they stand: kubeletVersion 1.10 is not the number 1.1.
  set_text(row, name, is_text(row) ? value.text() : scalar_text(value));
}

void Draft::set_yaml_map(const Row& row, const yaml::Document& document, const yaml::Value& value) {
  if (!value.is_map()) {
    add_problem(fmt::format("{}: {} is {}; it must be a map", document.where(value), row.key,
                            to_string(value.kind())));
    return;
  }
  TextMap map;
  for (const auto& [key, entry] : value.entries()) {
    const bool text = entry.is_scalar() && entry.kind() != yaml::Kind::kBool &&
                      !(entry.is_null() && !entry.text().empty());
    Problem problem;
    if (text) {
      problem = row.entry_rule(key, entry.text());
    } else {
      problem = fmt::format("has a value for \"{}\" that is {}; it must be text{}", key,
                            to_string(entry.kind()), entry.is_scalar() ? ": quote it" : "");
    }
    if (problem) {
      add_problem(fmt::format("{}: {} {}", document.where_key(entry), row.key, *problem));
    }
    map.emplace(key, entry.text());
  }
  auto& into = std::get<TextMap& (*)(Settings&)>(row.field)(settings);
  map.merge(into);  // of an earlier file, unless this one says otherwise
  into = std::move(map);
  set_name(row.key, fmt::format("{}: {}", document.where_key(value), row.key));
}

}  // namespace slurmlet::config
