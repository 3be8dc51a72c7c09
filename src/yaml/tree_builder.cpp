// libyaml's events made into a tree: recursive descent, one function per event kind. The recursion
// is bounded by kMaxDepth.

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <map>

#include "yaml/document.h"
#include "yaml/scalar.h"

namespace slurmlet::yaml {
namespace {

class Event {
 public:
  Event() = default;
  ~Event() { yaml_event_delete(&event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  yaml_event_t* get() { return &event_; }
  const yaml_event_t* operator->() const { return &event_; }

 private:
  yaml_event_t event_{};
};

int from_one(std::size_t libyaml_position) { return static_cast<int>(libyaml_position) + 1; }

std::string text_of(const yaml_char_t* bytes) {
  return bytes == nullptr ? std::string{} : reinterpret_cast<const char*>(bytes);
}

constexpr std::string_view kTagPrefix = "tag:yaml.org,2002:";

bool is_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

// The code unit of "\uXXXX" at `at`, if there is one.
std::optional<unsigned> escaped_unit(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) != "\\u" || text.size() < at + 6) {
    return std::nullopt;
  }
  const auto hex = core_int(fmt::format("0x{}", text.substr(at + 2, 4)));
  return hex ? std::optional{static_cast<unsigned>(*hex)} : std::nullopt;
}

// JSON differs from what libyaml reads in two places: characters beyond U+FFFF are escaped as
// surrogate pairs (here made into \UXXXXXXXX), and tabs may stand before the first bracket.
std::string json_for_libyaml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool started = false;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != '\\') {
      started = started || text[i] == '{' || text[i] == '[';
      out += !started && text[i] == '\t' ? ' ' : text[i];
      ++i;
      continue;
    }
    const auto high = escaped_unit(text, i);
    const auto low = escaped_unit(text, i + 6);
    if (high && low && (*high & 0xfc00U) == 0xd800U && (*low & 0xfc00U) == 0xdc00U) {
      out += fmt::format("\\U{:08x}", 0x10000U + ((*high & 0x3ffU) << 10U) + (*low & 0x3ffU));
      i += 12;
    } else {
      // With the character after it, so that "\\u" stays an escaped backslash.
      out += text.substr(i, 2);
      i += 2;
    }
  }
  return out;
}

}  // namespace

class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const std::string& file_name)
      : text_(text), file_name_(file_name) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text_.data()),
                                 text_.size());
  }
  ~TreeBuilder() { yaml_parser_delete(&parser_); }
  TreeBuilder(const TreeBuilder&) = delete;
  TreeBuilder& operator=(const TreeBuilder&) = delete;

  Result<Document> build();

 private:
  struct Size {
    std::size_t nodes = 1;
    std::size_t bytes = 0;
    std::size_t depth = 1;
  };

  Status next(Event& event);
  Status read_value(Event& event, std::size_t depth, Value& into);
  Status read_scalar(Event& event, Value& into);
  Status read_list(std::size_t depth, Value& into);
  Status read_map(std::size_t depth, Value& into);
  Status read_entry(Event& key_event, std::size_t depth, std::map<std::string, int>& seen,
                    Value& into);
  Status read_alias(Event& event, std::size_t depth, Value& into);
  Status remember(const yaml_char_t* anchor, const Value& value);
  static Size measure(const Value& value);
  Error at(const yaml_mark_t& mark, const std::string& problem) const;
  Error parser_error() const;

  std::string_view text_;
  const std::string& file_name_;
  yaml_parser_t parser_{};
  std::map<std::string, Value> anchors_;
  std::size_t nodes_ = 0;
  std::size_t aliases_ = 0;
  std::size_t alias_bytes_ = 0;
};

Error TreeBuilder::at(const yaml_mark_t& mark, const std::string& problem) const {
  return {Code::kInvalid, fmt::format("{}:{}:{}: {}", file_name_, from_one(mark.line),
                                      from_one(mark.column), problem)};
}

Error TreeBuilder::parser_error() const {
  const std::string problem = parser_.problem == nullptr ? "not enough memory" : parser_.problem;
  if (parser_.error == YAML_READER_ERROR) {
    const auto before = text_.substr(0, std::min(parser_.problem_offset, text_.size()));
    const auto line_start = before.rfind('\n') + 1;  // npos + 1 == 0
    yaml_mark_t mark{};
    mark.line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
    mark.column = before.size() - line_start;
    return at(mark, fmt::format("not UTF-8 text: {}", problem));
  }
  if (parser_.context == nullptr) {
    return at(parser_.problem_mark, problem);
  }
  return at(parser_.problem_mark,
            fmt::format("{} {} that starts in line {}", problem, parser_.context,
                        from_one(parser_.context_mark.line)));
}

Status TreeBuilder::next(Event& event) {
  if (yaml_parser_parse(&parser_, event.get()) == 0) {
    return parser_error();
  }
  return {};
}

Status TreeBuilder::remember(const yaml_char_t* anchor, const Value& value) {
  if (anchor != nullptr) {
    if (anchors_.size() >= kMaxAliases) {
      return Error{Code::kInvalid,
                   fmt::format("{}:{}:{}: more than {} anchors; write the values out", file_name_,
                               value.line_, value.column_, kMaxAliases)};
    }
    anchors_[text_of(anchor)] = value;
  }
  return {};
}

Status TreeBuilder::read_value(Event& event, std::size_t depth, Value& into) {
  into.line_ = from_one(event->start_mark.line);
  into.column_ = from_one(event->start_mark.column);
  if (++nodes_ > kMaxNodes) {
    return at(event->start_mark, fmt::format("more than {} values", kMaxNodes));
  }
  Status done;
  const yaml_char_t* anchor = nullptr;
  switch (event->type) {
    case YAML_SCALAR_EVENT:
      anchor = event->data.scalar.anchor;
      done = read_scalar(event, into);
      break;
    case YAML_ALIAS_EVENT:
      return read_alias(event, depth, into);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT: {
      if (depth >= kMaxDepth) {
        return at(event->start_mark, fmt::format("nested deeper than {} levels", kMaxDepth));
      }
      const bool list = event->type == YAML_SEQUENCE_START_EVENT;
      anchor = list ? event->data.sequence_start.anchor : event->data.mapping_start.anchor;
      done = list ? read_list(depth + 1, into) : read_map(depth + 1, into);
      break;
    }
    default:
      return at(event->start_mark, "a value is expected here");
  }
  return done ? remember(anchor, into) : done;
}

Status TreeBuilder::read_scalar(Event& event, Value& into) {
  const auto& scalar = event->data.scalar;
  into.text_.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
  into.kind_ = scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_kind(into.text_) : Kind::kString;
  const std::string tag = text_of(scalar.tag);
  if (tag.empty()) {
    return {};
  }
  const Kind meant = plain_kind(into.text_);
  if (tag == "!" || tag == fmt::format("{}str", kTagPrefix)) {
    into.kind_ = Kind::kString;
    return {};
  }
  static const std::map<std::string, Kind> kTags = {
      {"null", Kind::kNull}, {"bool", Kind::kBool}, {"int", Kind::kInt}, {"float", Kind::kDouble}};
  const auto known =
      tag.starts_with(kTagPrefix) ? kTags.find(tag.substr(kTagPrefix.size())) : kTags.end();
  const bool whole_float =
      known != kTags.end() && known->second == Kind::kDouble && meant == Kind::kInt;
  if (known == kTags.end() || (known->second != meant && !whole_float)) {
    return at(event->start_mark,
              fmt::format("the tag \"{}\" does not fit here; leave it out", tag));
  }
  into.kind_ = known->second;
  return {};
}

Status TreeBuilder::read_list(std::size_t depth, Value& into) {
  into.kind_ = Kind::kList;
  while (true) {
    Event event;
    if (auto got = next(event); !got) {
      return got;
    }
    if (event->type == YAML_SEQUENCE_END_EVENT) {
      return {};
    }
    if (auto read = read_value(event, depth, into.items_.emplace_back()); !read) {
      return read;
    }
  }
}

Status TreeBuilder::read_map(std::size_t depth, Value& into) {
  into.kind_ = Kind::kMap;
  std::map<std::string, int> seen;  // key → line, so that a long map costs no square
  while (true) {
    Event event;
    if (auto got = next(event); !got) {
      return got;
    }
    if (event->type == YAML_MAPPING_END_EVENT) {
      return {};
    }
    if (auto read = read_entry(event, depth, seen, into); !read) {
      return read;
    }
  }
}

Status TreeBuilder::read_entry(Event& key_event, std::size_t depth,
                               std::map<std::string, int>& seen, Value& into) {
  if (key_event->type != YAML_SCALAR_EVENT) {
    return at(key_event->start_mark, "a key must be plain or quoted text");
  }
  const auto& scalar = key_event->data.scalar;
  std::string key(reinterpret_cast<const char*>(scalar.value), scalar.length);
  const int line = from_one(key_event->start_mark.line);
  if (key.empty() && scalar.style == YAML_PLAIN_SCALAR_STYLE) {
    return at(key_event->start_mark, "a key is missing before \":\"");
  }
  const auto [first, is_new] = seen.emplace(key, line);
  if (!is_new) {
    return at(key_event->start_mark,
              fmt::format("key \"{}\" is given twice; first in line {}", key, first->second));
  }
  Event event;
  if (auto got = next(event); !got) {
    return got;
  }
  Value& value = into.entries_.emplace_back(std::move(key), Value{}).second;
  if (auto read = read_value(event, depth, value); !read) {
    return read;
  }
  value.key_line_ = line;
  value.key_column_ = from_one(key_event->start_mark.column);
  return {};
}

TreeBuilder::Size TreeBuilder::measure(const Value& value) {
  Size size{1, value.text_.size(), 1};
  const auto add = [&size](const Value& child) {
    const Size inner = measure(child);
    size.nodes += inner.nodes;
    size.bytes += inner.bytes;
    size.depth = std::max(size.depth, inner.depth + 1);
  };
  for (const auto& item : value.items_) {
    add(item);
  }
  for (const auto& [key, child] : value.entries_) {
    size.bytes += key.size();
    add(child);
  }
  return size;
}

Status TreeBuilder::read_alias(Event& event, std::size_t depth, Value& into) {
  const std::string name = text_of(event->data.alias.anchor);
  const auto found = anchors_.find(name);
  if (found == anchors_.end()) {
    return at(event->start_mark, fmt::format("alias \"*{}\" has no anchor before it", name));
  }
  const Size size = measure(found->second);
  nodes_ += size.nodes;
  alias_bytes_ += size.bytes;
  if (++aliases_ > kMaxAliases || nodes_ > kMaxNodes || alias_bytes_ > kMaxBytes ||
      depth + size.depth > kMaxDepth) {
    return at(event->start_mark, "too many or too large aliases; write the values out");
  }
  const int line = into.line_;
  const int column = into.column_;
  into = found->second;
  into.line_ = line;
  into.column_ = column;
  return {};
}

Result<Document> TreeBuilder::build() {
  Value root;
  bool have_document = false;
  while (true) {
    Event event;
    if (auto got = next(event); !got) {
      return got.error();
    }
    if (event->type == YAML_STREAM_END_EVENT) {
      return Document{file_name_, std::move(root)};
    }
    if (event->type == YAML_STREAM_START_EVENT || event->type == YAML_DOCUMENT_END_EVENT) {
      continue;
    }
    if (event->type == YAML_DOCUMENT_START_EVENT) {
      if (have_document) {
        return at(event->start_mark, "a second document starts here; only one is expected");
      }
      have_document = true;
      continue;
    }
    if (auto read = read_value(event, 0, root); !read) {
      return read.error();
    }
  }
}

Result<Document> parse(std::string_view text, const std::string& file_name) {
  if (text.size() > kMaxBytes) {
    return Error{Code::kInvalid, fmt::format("{}:1:1: longer than {} bytes", file_name, kMaxBytes)};
  }
  if (is_json(text)) {
    const std::string converted = json_for_libyaml(text);
    return TreeBuilder{converted, file_name}.build();
  }
  return TreeBuilder{text, file_name}.build();
}

}  // namespace slurmlet::yaml
