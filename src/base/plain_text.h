#pragma once

// Somebody else's text made fit for a terminal, a log and the API: one line of valid UTF-8 of a
// bounded length, without control characters (C0, DEL, C1, so no escape sequences), without
// characters that reorder what is shown (bidirectional) and without invisible ones. Pure.

#include <cstddef>
#include <string>
#include <string_view>

namespace slurmlet {

inline constexpr std::size_t kMaxPlainBytes = 1024;

// Length of the valid UTF-8 sequence at the front, 0 if there is none (table 3-7 of the Unicode
// standard).
std::size_t utf8_length(std::string_view text);

// The text with every byte that is not part of valid UTF-8 (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF) replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// Blanks and removed characters become one space; what is cut off is marked with "...".
std::string plain_text(std::string_view text, std::size_t max_bytes = kMaxPlainBytes);

// The same for a list with commas, of which only whole elements are kept: no mark, since somebody
// may read it back.
std::string plain_list(std::string_view text, std::size_t max_bytes = kMaxPlainBytes);

// The words of an HTML page: blanks in the place of its tags.
std::string without_tags(std::string_view html);

// For text of many lines, and JSON, on its way to a terminal: what plain_text() would remove, but
// for spaces and ends of lines, becomes \uXXXX, which JSON reads back as the same.
std::string shown_controls(std::string_view text);

}  // namespace slurmlet
