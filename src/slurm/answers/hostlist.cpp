#include "slurm/answers/hostlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace slurmlet::slurm {
namespace {

struct Range {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  std::size_t width = 0;  // shorter numbers are padded with zeros to this
};

// Text followed by at most one bracket; `ranges` is empty for the end of an element.
struct Piece {
  std::string_view text;
  std::vector<Range> ranges;
};

std::optional<Range> parse_range(std::string_view text) {
  const auto dash = text.find('-');
  const auto low_text = trim(text.substr(0, dash));
  const auto high_text = dash == std::string_view::npos ? low_text : trim(text.substr(dash + 1));
  const auto low = parse_int<std::uint64_t>(low_text);
  const auto high = parse_int<std::uint64_t>(high_text);
  if (!low || !high || *high < *low) {
    return std::nullopt;
  }
  return Range{*low, *high, low_text.size()};
}

std::optional<std::vector<Piece>> parse_element(std::string_view element) {
  std::vector<Piece> pieces;
  while (true) {
    const auto open = element.find('[');
    Piece piece{element.substr(0, open), {}};
    if (piece.text.find(']') != std::string_view::npos) {
      return std::nullopt;
    }
    if (open == std::string_view::npos) {
      pieces.push_back(std::move(piece));
      return pieces;
    }
    const auto close = element.find(']', open);
    if (close == std::string_view::npos) {
      return std::nullopt;
    }
    for (const auto part : split(element.substr(open + 1, close - open - 1), ',')) {
      const auto range = parse_range(part);
      if (!range) {
        return std::nullopt;
      }
      piece.ranges.push_back(*range);
    }
    pieces.push_back(std::move(piece));
    element.remove_prefix(close + 1);
  }
}

Status append_element(const std::vector<Piece>& pieces, std::size_t limit,
                      std::vector<std::string>& out) {
  std::vector<std::string> names{""};
  for (const auto& piece : pieces) {
    std::vector<std::string> longer;
    for (const auto& name : names) {
      const std::string head = name + std::string{piece.text};
      if (piece.ranges.empty()) {
        longer.push_back(head);
      }
      for (const auto& range : piece.ranges) {
        if (range.high - range.low >= limit - std::min(limit, out.size() + longer.size())) {
          return Error{Code::kInvalid, fmt::format("host list has more than {} names", limit)};
        }
        for (auto number = range.low; number <= range.high; ++number) {
          longer.push_back(fmt::format("{}{:0{}}", head, number, range.width));
        }
      }
    }
    names = std::move(longer);
  }
  if (out.size() + names.size() > limit) {
    return Error{Code::kInvalid, fmt::format("host list has more than {} names", limit)};
  }
  out.insert(out.end(), names.begin(), names.end());
  return {};
}

bool in_range(const Range& range, std::string_view digits) {
  const auto number = parse_int<std::uint64_t>(digits);
  if (!number || *number < range.low || *number > range.high) {
    return false;
  }
  const bool padded = digits.size() > 1 && digits.front() == '0';
  return padded ? digits.size() == range.width : digits.size() >= range.width;
}

// At most kMaxExpandedHosts for each range.
std::uint64_t numbers_of(const Piece& piece) {
  std::uint64_t numbers = piece.ranges.empty() ? 1 : 0;
  for (const Range& range : piece.ranges) {
    numbers += std::min<std::uint64_t>(range.high - range.low, kMaxExpandedHosts) + 1;
  }
  return numbers;
}

std::uint64_t count_element(const std::vector<Piece>& pieces) {
  std::uint64_t names = 1;
  for (const auto& piece : pieces) {
    names = std::min<std::uint64_t>(names * numbers_of(piece), kMaxExpandedHosts);
  }
  return names;
}

// Matches piece by piece; a number may end at any digit, as more digits may be text of the list.
bool matches(const std::vector<Piece>& pieces, std::size_t index, std::string_view name) {
  const Piece& piece = pieces[index];
  if (!name.starts_with(piece.text)) {
    return false;
  }
  name.remove_prefix(piece.text.size());
  if (piece.ranges.empty()) {
    return name.empty();
  }
  const auto digits = std::min(name.find_first_not_of("0123456789"), name.size());
  for (std::size_t length = 1; length <= digits; ++length) {
    const auto number = name.substr(0, length);
    const auto has = [&](const Range& range) { return in_range(range, number); };
    if (std::any_of(piece.ranges.begin(), piece.ranges.end(), has) &&
        matches(pieces, index + 1, name.substr(length))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string_view> hostlist_elements(std::string_view list) {
  std::vector<std::string_view> elements;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      if (const auto element = trim(list.substr(begin, i - begin)); !element.empty()) {
        elements.push_back(element);
      }
      begin = i + 1;
    } else if (list[i] == '[') {
      ++depth;
    } else if (list[i] == ']') {
      depth = std::max(0, depth - 1);
    }
  }
  return elements;
}

Result<std::vector<std::string>> expand_hostlist(std::string_view list, std::size_t limit) {
  std::vector<std::string> out;
  for (const auto element : hostlist_elements(list)) {
    const auto pieces = parse_element(element);
    if (!pieces) {
      return Error{Code::kInvalid, fmt::format("host list '{}' is malformed", element)};
    }
    TRY(append_element(*pieces, limit, out));
  }
  return out;
}

std::size_t count_hostlist(std::string_view list) {
  std::uint64_t sum = 0;
  for (const auto element : hostlist_elements(list)) {
    const auto pieces = parse_element(element);
    if (!pieces) {
      return 0;
    }
    sum = std::min<std::uint64_t>(sum + count_element(*pieces), kMaxExpandedHosts);
  }
  return sum;
}

bool hostlist_contains(std::string_view list, std::string_view name) {
  const auto elements = hostlist_elements(list);
  return std::any_of(elements.begin(), elements.end(), [&](std::string_view element) {
    const auto pieces = parse_element(element);
    return pieces && matches(*pieces, 0, name);
  });
}

}  // namespace slurmlet::slurm
