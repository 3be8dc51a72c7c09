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
  const auto byte_at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&](std::size_t i) { return (byte_at(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte_at(0);
  if (first < 0x80) {
    return text.empty() ? 0 : 1;
  }
  const unsigned second = byte_at(1);
  if (first >= 0xC2 && first <= 0xDF) {
    return continues(1) ? 2 : 0;
  }
  if (first >= 0xE0 && first <= 0xEF) {
    const bool bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F);
    return !bad && continues(1) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool bad = (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
    return !bad && continues(1) && continues(2) && continues(3) ? 4 : 0;
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
