#include "slurm/answers/gres.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/plain_text.h"
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

bool is_device_list(std::string_view list) {
  return !list.empty() && list.find_first_not_of("0123456789,-") == std::string_view::npos;
}

void add_to_list(std::string_view more, std::string& list) {
  if (!more.empty() && list != more) {
    list += list.empty() ? "" : ",";
    list += more;
  }
}

// The inside of a group behind the count: "S:0-1", "IDX:0,2-3", "IDX:N/A" or "3/4,0/4". Others
// say nothing that is known here.
void take_group(std::string_view group, node::Gres& gres) {
  if (group.starts_with("S:") && is_device_list(group.substr(2))) {
    gres.sockets = group.substr(2);
  } else if (group.starts_with("IDX:") && is_device_list(group.substr(4))) {
    gres.indices = group.substr(4);
  } else if (group.find('/') != std::string_view::npos &&
             group.find_first_not_of("0123456789,/") == std::string_view::npos) {
    gres.shares = group;
  }
}

// Takes the groups at the end of an entry. A group right after a colon is the type "(null)" and
// stays; one that is not closed (the text was cut off) says nothing and goes.
std::string_view take_groups(std::string_view entry, node::Gres& gres) {
  const auto last_open = entry.rfind('(');
  if (last_open != std::string_view::npos && last_open > 0 && entry[last_open - 1] != ':' &&
      entry.find(')', last_open) == std::string_view::npos) {
    entry = entry.substr(0, last_open);
  }
  while (!entry.empty() && entry.back() == ')') {
    const auto open = entry.rfind('(');
    if (open == std::string_view::npos || open == 0 || entry[open - 1] == ':') {
      break;
    }
    take_group(entry.substr(open + 1, entry.size() - open - 2), gres);
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
  node::Gres gres;
  auto fields = split_top_level(take_groups(trim(entry), gres), ':');
  gres.name = trim(fields.front());
  if (gres.name.empty()) {
    return std::nullopt;
  }
  fields.erase(fields.begin());
  gres.no_consume = std::erase(fields, "no_consume") > 0;
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

void add_gres(const node::Gres& more, node::Gres& sum) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  sum.count = sum.count > kMax - more.count ? kMax : sum.count + more.count;
  add_to_list(more.sockets, sum.sockets);
  add_to_list(more.indices, sum.indices);
  add_to_list(more.shares, sum.shares);
  sum.no_consume = sum.no_consume || more.no_consume;
}

}  // namespace

std::vector<node::Gres> parse_gres(std::string_view printed) {
  const std::string valid = valid_utf8(printed);
  const auto text = trim(valid);
  std::vector<node::Gres> out;
  if (text.empty() || text == "(null)" || text == "N/A") {
    return out;
  }
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const auto part : split_top_level(text, ',')) {
    auto gres = parse_entry(part);
    if (!gres) {
      continue;
    }
    const auto [at, is_new] = places.try_emplace({gres->name, gres->type}, out.size());
    if (is_new) {
      out.push_back(*std::move(gres));
    } else {
      add_gres(*gres, out[at->second]);
    }
  }
  return out;
}

}  // namespace slurmlet::slurm
