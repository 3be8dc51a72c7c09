#include "yaml/emit.h"

#include <yaml.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "yaml/scalar.h"

namespace slurmlet::yaml {
namespace {

using nlohmann::ordered_json;

// Words that YAML 1.1 readers (kubectl's among them) take for booleans, null or a merge key.
bool is_yaml11_word(std::string_view text) {
  return is_one_of(to_lower(text),
                   {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "="});
}

// Numbers, sexagesimal numbers, dates and times of YAML 1.1. Two dots and no colon (an IPv4
// address, a version) are none of these.
bool looks_like_number(std::string_view text) {
  const auto unsigned_part = text.substr(std::min(text.find_first_not_of("+-"), text.size()));
  if (plain_kind(text) != Kind::kString || unsigned_part.starts_with("0x") ||
      unsigned_part.starts_with("0X")) {
    return true;
  }
  if (text.find_first_of("0123456789") == std::string_view::npos ||
      text.find_first_not_of("0123456789_.:+-eExXoObBtTzZ ") != std::string_view::npos) {
    return false;
  }
  const bool dotted = std::count(text.begin(), text.end(), '.') >= 2;
  return !dotted || text.find(':') != std::string_view::npos;
}

// Among what is beyond ASCII are separators that YAML 1.1 takes for newlines.
bool is_unsafe_byte(char c) {
  return c != '\n' &&
         (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f);
}

// libyaml sees what the syntax needs, not what a reader takes a plain text for.
yaml_scalar_style_t style_of(std::string_view text) {
  if (is_yaml11_word(text) || looks_like_number(text) ||
      std::any_of(text.begin(), text.end(), is_unsafe_byte)) {
    return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
  }
  return text.find('\n') == std::string_view::npos ? YAML_ANY_SCALAR_STYLE
                                                   : YAML_LITERAL_SCALAR_STYLE;
}

// libyaml's emitter with one document. It fails only for want of memory and for what is not UTF-8,
// of which there is none here: what it has written until then is the result.
class Writer {
 public:
  Writer() {
    yaml_emitter_initialize(&emitter_);
    yaml_emitter_set_output(&emitter_, append, &out_);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_width(&emitter_, -1);
  }
  ~Writer() { yaml_emitter_delete(&emitter_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  std::string document(const ordered_json& json) {
    send(yaml_stream_start_event_initialize(&event_, YAML_UTF8_ENCODING));
    send(yaml_document_start_event_initialize(&event_, nullptr, nullptr, nullptr, 1));
    value(json);
    send(yaml_document_end_event_initialize(&event_, 1));
    send(yaml_stream_end_event_initialize(&event_));
    return std::move(out_);
  }

 private:
  static int append(void* out, unsigned char* bytes, std::size_t size) {
    static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(bytes), size);
    return 1;
  }

  void send(int initialized) {
    if (initialized != 0) {
      yaml_emitter_emit(&emitter_, &event_);
    }
  }

  void scalar(const std::string& text, yaml_scalar_style_t style) {
    const auto* bytes = reinterpret_cast<const yaml_char_t*>(text.data());
    send(yaml_scalar_event_initialize(&event_, nullptr, nullptr, bytes,
                                      static_cast<int>(text.size()), 1, 1, style));
  }

  void value(const ordered_json& json) {
    if (json.is_object()) {
      send(yaml_mapping_start_event_initialize(&event_, nullptr, nullptr, 1,
                                               YAML_BLOCK_MAPPING_STYLE));
      for (const auto& [key, child] : json.items()) {
        scalar(key, style_of(key));
        value(child);
      }
      send(yaml_mapping_end_event_initialize(&event_));
    } else if (json.is_array()) {
      send(yaml_sequence_start_event_initialize(&event_, nullptr, nullptr, 1,
                                                YAML_BLOCK_SEQUENCE_STYLE));
      for (const auto& child : json) {
        value(child);
      }
      send(yaml_sequence_end_event_initialize(&event_));
    } else if (json.is_string()) {
      const auto& text = json.get_ref<const std::string&>();
      scalar(text, style_of(text));
    } else {
      scalar(json.dump(), YAML_PLAIN_SCALAR_STYLE);
    }
  }

  std::string out_;
  yaml_emitter_t emitter_{};
  yaml_event_t event_{};
};

}  // namespace

std::string emit(const ordered_json& value) {
  // Bytes that are not UTF-8 are replaced on the way.
  const std::string clean = value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return Writer{}.document(ordered_json::parse(clean));
}

}  // namespace slurmlet::yaml
