#include "slurm/gres.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "base/text.h"

namespace slurmlet::slurm {
namespace {

// Parts between separators that are outside of parentheses: "gpu:2(IDX:0,2),shard:1" has two.
std::vector<std::string_view> split_top_level(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') {
      ++depth;
    } else if (text[i] == ')') {
      depth = std::max(0, depth - 1);
    } else if (text[i] == separator && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

// Without "(S:0-1)", "(IDX:0,2-3)" or "(3/4,0/4)" at the end. A group right after a colon is the
// type "(null)" and stays.
std::string_view without_device_list(std::string_view entry) {
  while (!entry.empty() && entry.back() == ')') {
    const auto open = entry.rfind('(');
    if (open == std::string_view::npos || open == 0 || entry[open - 1] == ':') {
      break;
    }
    entry = entry.substr(0, open);
  }
  return entry;
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') {
    return std::nullopt;
  }
  const auto digits_end = std::min(text.find_first_not_of("0123456789"), text.size());
  std::int64_t factor = 1;
  if (digits_end + 1 == text.size()) {
    constexpr std::string_view kSuffixes = "KMGTP";
    const auto power = kSuffixes.find(to_upper(text.substr(digits_end))[0]);
    if (power == std::string_view::npos) {
      return std::nullopt;
    }
    factor = std::int64_t{1} << (10 * (power + 1));
  } else if (digits_end != text.size()) {
    return std::nullopt;
  }
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  const auto number = parse_int<std::int64_t>(text.substr(0, digits_end)).value_or(kMax);
  return number > kMax / factor ? kMax : number * factor;
}

std::optional<node::Gres> parse_entry(std::string_view entry) {
  auto fields = split_top_level(without_device_list(trim(entry)), ':');
  node::Gres gres;
  gres.name = trim(fields.front());
  if (gres.name.empty()) {
    return std::nullopt;
  }
  fields.erase(fields.begin());
  std::erase(fields, "no_consume");
  gres.count = 1;
  if (!fields.empty()) {
    if (const auto count = parse_count(fields.back())) {
      gres.count = *count;
      fields.pop_back();
    }
  }
  for (const auto field : fields) {
    if (field != "(null)") {
      gres.type += gres.type.empty() ? "" : ":";
      gres.type += field;
    }
  }
  return gres;
}

}  // namespace

std::vector<node::Gres> parse_gres(std::string_view text) {
  text = trim(text);
  std::vector<node::Gres> out;
  if (text.empty() || text == "(null)" || text == "N/A") {
    return out;
  }
  for (const auto part : split_top_level(text, ',')) {
    const auto gres = parse_entry(part);
    if (!gres) {
      continue;
    }
    const auto same = std::find_if(out.begin(), out.end(), [&](const node::Gres& other) {
      return other.name == gres->name && other.type == gres->type;
    });
    if (same == out.end()) {
      out.push_back(*gres);
    } else if (same->count > std::numeric_limits<std::int64_t>::max() - gres->count) {
      same->count = std::numeric_limits<std::int64_t>::max();
    } else {
      same->count += gres->count;
    }
  }
  return out;
}

}  // namespace slurmlet::slurm
