#include "yaml/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "yaml/scalar.h"

namespace slurmlet::yaml {
namespace {

// Words that YAML 1.1 readers (kubectl's among them) take for booleans or null.
bool is_yaml11_word(std::string_view text) {
  const std::string word = to_lower(text);
  for (const std::string_view taken :
       {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"}) {
    if (word == taken) {
      return true;
    }
  }
  return false;
}

// Numbers, sexagesimal numbers, dates and times of YAML 1.1. Two dots and no colon (an IPv4
// address, a version) are none of these.
bool looks_like_number(std::string_view text) {
  if (plain_kind(text) != Kind::kString || text.starts_with("0x") || text.starts_with("0X")) {
    return true;
  }
  if (text.find_first_of("0123456789") == std::string_view::npos ||
      text.find_first_not_of("0123456789_.:+-eExXoObBtTzZ ") != std::string_view::npos) {
    return false;
  }
  const bool dotted = std::count(text.begin(), text.end(), '.') >= 2;
  return !dotted || text.find(':') != std::string_view::npos;
}

bool is_unsafe_byte(char c) {
  // Everything beyond ASCII is quoted: among it are separators that YAML 1.1 takes for newlines.
  return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f;
}

bool needs_quotes(std::string_view text) {
  constexpr std::string_view kIndicators = "-?:,[]{}#&*!|>'\"%@`=<";
  return text.empty() || kIndicators.find(text.front()) != std::string_view::npos ||
         text.front() == ' ' || text.back() == ' ' || text.back() == ':' ||
         text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos ||
         text.starts_with("...") || is_yaml11_word(text) || looks_like_number(text) ||
         std::any_of(text.begin(), text.end(), is_unsafe_byte);
}

// The escape of the UTF-8 sequence at the front of `rest` that must not stand as itself between
// double quotes, with its length; 0 when the first byte is harmless.
std::pair<std::string, std::size_t> escape_at(std::string_view rest) {
  const char c = rest.front();
  switch (c) {
    case '"':
      return {"\\\"", 1};
    case '\\':
      return {"\\\\", 1};
    case '\n':
      return {"\\n", 1};
    case '\t':
      return {"\\t", 1};
    case '\r':
      return {"\\r", 1};
    default:
      break;
  }
  if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
    return {fmt::format("\\x{:02x}", static_cast<unsigned>(c)), 1};
  }
  if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
    return {rest[2] == '\xa8' ? "\\L" : "\\P", 3};
  }
  if (rest.starts_with("\xef\xbb\xbf")) {
    return {"\\ufeff", 3};
  }
  if (c == '\xc2' && rest.size() > 1 && static_cast<unsigned char>(rest[1]) < 0xa0) {
    return {fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(rest[1]))),
            2};
  }
  return {"", 0};
}

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto [escape, length] = escape_at(text);
    if (length == 0) {
      out += text.front();
      text.remove_prefix(1);
    } else {
      out += escape;
      text.remove_prefix(length);
    }
  }
  return out + '"';
}

// Whether a text of several lines can stand as a literal block ("|") unchanged.
bool fits_literal_block(std::string_view text) {
  const auto newline = text.find('\n');
  return newline != std::string_view::npos && newline != 0 && text.front() != ' ' &&
         !text.ends_with("\n\n") && std::none_of(text.begin(), text.end(), [](char c) {
           return c != '\n' && is_unsafe_byte(c);
         });
}

std::string text_scalar(const std::string& text, std::size_t indent) {
  if (!fits_literal_block(text)) {
    return needs_quotes(text) ? double_quoted(text) : text;
  }
  std::string out = text.back() == '\n' ? "|" : "|-";
  const std::string_view body = text.back() == '\n'
                                    ? std::string_view{text}.substr(0, text.size() - 1)
                                    : std::string_view{text};
  for (const auto line : split(body, '\n')) {
    out += '\n';
    if (!line.empty()) {
      out += fmt::format("{:{}}{}", "", indent, line);
    }
  }
  return out;
}

template <typename Json>
class Writer {
 public:
  std::string take() { return std::move(out_); }

  // `indent` is the column of the value's own lines; `inline_first` says that the cursor already
  // stands there (after "- "), so the first line needs no indentation.
  void value(const Json& json, std::size_t indent, bool inline_first) {
    if (json.is_object() && !json.empty()) {
      map(json, indent, inline_first);
    } else if (json.is_array() && !json.empty()) {
      list(json, indent, inline_first);
    } else {
      out_ += scalar(json, indent) + '\n';
    }
  }

 private:
  static std::string scalar(const Json& json, std::size_t indent) {
    if (json.is_string()) {
      return text_scalar(json.template get_ref<const std::string&>(),
                         std::max<std::size_t>(indent, 2));
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void start_line(std::size_t indent, bool inline_first) {
    if (!inline_first) {
      out_.append(indent, ' ');
    }
  }

  void map(const Json& json, std::size_t indent, bool inline_first) {
    for (const auto& [key, child] : json.items()) {
      start_line(indent, inline_first);
      inline_first = false;
      out_ += needs_quotes(key) ? double_quoted(key) : key;
      const bool nested = child.is_structured() && !child.empty();
      out_ += nested ? ":\n" : ": ";
      // As kubectl: the dashes of a list stand under the key, not further in.
      value(child, child.is_array() ? indent : indent + 2, false);
    }
  }

  void list(const Json& json, std::size_t indent, bool inline_first) {
    for (const auto& child : json) {
      start_line(indent, inline_first);
      inline_first = false;
      out_ += "- ";
      value(child, indent + 2, true);
    }
  }

  std::string out_;
};

template <typename Json>
std::string emit_any(const Json& json) {
  Writer<Json> writer;
  writer.value(json, 0, false);
  return writer.take();
}

}  // namespace

std::string emit(const nlohmann::json& value) { return emit_any(value); }
std::string emit(const nlohmann::ordered_json& value) { return emit_any(value); }

Result<std::string> emit_json_text(std::string_view json_text) {
  const auto json = nlohmann::ordered_json::parse(json_text, nullptr, false);
  if (json.is_discarded()) {
    return Error{Code::kInvalid, "not JSON"};
  }
  return emit(json);
}

}  // namespace slurmlet::yaml
