#include "base/plain_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace slurmlet {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kCut = "...";

struct Span {
  std::uint32_t first, last;
};

// Ascending. Controls and blanks; soft hyphen; marks, embeddings, overrides and isolates of
// bidirectional text; separators of lines and paragraphs; characters without a width; fillers;
// interlinear annotation; tags.
constexpr std::array<Span, 14> kRemoved = {{{0x0000, 0x0020},
                                            {0x007F, 0x00A0},
                                            {0x00AD, 0x00AD},
                                            {0x061C, 0x061C},
                                            {0x115F, 0x1160},
                                            {0x17B4, 0x17B5},
                                            {0x180E, 0x180E},
                                            {0x200B, 0x200F},
                                            {0x2028, 0x202F},
                                            {0x2060, 0x206F},
                                            {0x3164, 0x3164},
                                            {0xFEFF, 0xFEFF},
                                            {0xFFF0, 0xFFFB},
                                            {0xE0000, 0xE0FFF}}};

std::uint32_t code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(sequence[i]); };
  if (sequence.size() == 1) {
    return byte(0);
  }
  std::uint32_t out = byte(0) & (0xFFU >> (sequence.size() + 1));
  for (std::size_t i = 1; i < sequence.size(); ++i) {
    out = (out << 6U) | (byte(i) & 0x3FU);
  }
  return out;
}

bool is_removed(std::uint32_t point) {
  return std::any_of(kRemoved.begin(), kRemoved.end(),
                     [point](Span span) { return point >= span.first && point <= span.last; });
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  // The Unicode Standard, table 3-7: by the first byte, which second ones there are. All others
  // are 80 to BF.
  struct Row {
    unsigned first_from, first_to, second_from, second_to;
    std::size_t length;
  };
  static constexpr std::array<Row, 9> kRows{{{0x00, 0x7F, 0, 0, 1},
                                             {0xC2, 0xDF, 0x80, 0xBF, 2},
                                             {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                             {0xE1, 0xEC, 0x80, 0xBF, 3},
                                             {0xED, 0xED, 0x80, 0x9F, 3},
                                             {0xEE, 0xEF, 0x80, 0xBF, 3},
                                             {0xF0, 0xF0, 0x90, 0xBF, 4},
                                             {0xF1, 0xF3, 0x80, 0xBF, 4},
                                             {0xF4, 0xF4, 0x80, 0x8F, 4}}};
  const auto is_in = [&](std::size_t i, unsigned from, unsigned to) {
    const auto byte = static_cast<unsigned char>(text[i]);
    return byte >= from && byte <= to;
  };
  for (const Row& row : kRows) {
    if (text.size() < row.length || !is_in(0, row.first_from, row.first_to)) {
      continue;
    }
    bool good = row.length < 2 || is_in(1, row.second_from, row.second_to);
    for (std::size_t i = 2; i < row.length; ++i) {
      good = good && is_in(i, 0x80, 0xBF);
    }
    return good ? row.length : 0;
  }
  return 0;
}

std::string plain_text(std::string_view text, std::size_t max_bytes) {
  std::string line;
  std::size_t fits = 0;  // so much of `line` fits with the mark
  bool space_due = false;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
    if (is_removed(code_point(character))) {
      space_due = !line.empty();
      continue;
    }
    if (std::exchange(space_due, false)) {
      line += ' ';
    }
    line += character;
    if (line.size() > max_bytes) {
      line.resize(fits);
      return line.append(kCut.substr(0, max_bytes - std::min(fits, max_bytes)));
    }
    if (line.size() + kCut.size() <= max_bytes) {
      fits = line.size();
    }
  }
  return line;
}

std::string shown_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto put_unit = [&out](std::uint32_t unit) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    out += "\\u";
    for (const unsigned shift : {12U, 8U, 4U, 0U}) {
      out += kDigits[(unit >> shift) & 0xFU];
    }
  };
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = length == 0 ? kReplacement : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
    const std::uint32_t point = code_point(character);
    if (point == ' ' || point == '\n' || point == 0xA0 || !is_removed(point)) {
      out += character;
    } else if (point < 0x10000) {
      put_unit(point);
    } else {
      put_unit(0xD800U + ((point - 0x10000U) >> 10U));
      put_unit(0xDC00U + ((point - 0x10000U) & 0x3FFU));
    }
  }
  return out;
}

std::string plain_list(std::string_view text, std::size_t max_bytes) {
  std::string line = plain_text(text, text.size() * kReplacement.size() + 1);
  if (line.size() > max_bytes) {
    const auto comma = line.rfind(',', max_bytes);
    line.resize(comma == std::string::npos ? 0 : comma);
  }
  return line;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string without_tags(std::string_view html) {
  std::string text;
  bool in_tag = false;
  for (const char c : html) {
    in_tag = c == '<' || (in_tag && c != '>');
    text += in_tag || c == '>' ? ' ' : c;
  }
  return text;
}

}  // namespace slurmlet
