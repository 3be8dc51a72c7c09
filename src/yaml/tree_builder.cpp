// libyaml's events made into a tree: recursive descent, one function per event kind. The recursion
// is bounded by kMaxDepth.

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <map>

#include "base/result.h"
#include "base/text.h"
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

constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

// What to write in the place of a tag and its value. `is_plain`: a scalar without quotes.
std::string without_tag(const std::string& tag, bool is_plain) {
  if (!tag.starts_with(kCoreTag)) {
    return fmt::format("write in the place of \"{}\" and its value what they stand for", tag);
  }
  const std::string name = tag.substr(kCoreTag.size());
  std::string instead = "remove it";
  if (name == "binary") {
    instead = "replace it and its value with what base64 -d prints of the value";
  } else if (name == "str") {
    instead += is_plain ? ", and put the value in quotes" : "";
  } else if (is_one_of(name, {"int", "float", "bool", "null"})) {
    instead += is_plain ? "" : " and the quotes around the value";
  }
  return fmt::format("\"!!{}\": {}", name, instead);
}

// Looks like a space, or like nothing, and makes another key of one that is known.
bool has_invisible(std::string_view text) {
  return contains(text, "\xC2\xA0") || contains(text, "\xE2\x80\x8B") ||
         contains(text, "\xE2\x81\xA0") || contains(text, "\xEF\xBB\xBF");
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
  Status next(Event& event);
  Status read_value(const Event& event, std::size_t depth, Value& into);
  Status read_list(std::size_t depth, Value& into);
  Status read_map(std::size_t depth, Value& into);
  Status read_entry(const Event& key_event, std::size_t depth, std::map<std::string, int>& seen,
                    Value& into);
  Status check_plain(const Event& event) const;
  Error at(const yaml_mark_t& mark, const std::string& problem) const;
  Error parser_error() const;

  std::string_view text_;
  const std::string& file_name_;
  yaml_parser_t parser_{};
  std::size_t nodes_ = 0;
};

Error TreeBuilder::at(const yaml_mark_t& mark, const std::string& problem) const {
  return {Code::kInvalid, fmt::format("{}:{}:{}: {}", file_name_, from_one(mark.line),
                                      from_one(mark.column), problem)};
}

Error TreeBuilder::parser_error() const {
  std::string problem = parser_.problem == nullptr ? "not enough memory" : parser_.problem;
  const auto lines = split(text_, '\n');
  if (const auto line = parser_.problem_mark.line;
      line < lines.size() &&
      lines[line].substr(0, lines[line].find_first_not_of(" \t")).find('\t') !=
          std::string_view::npos) {
    problem = "a tab; indent with spaces";
  }
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

// Anchors, aliases and tags make one text stand for another; no file that is read here needs them.
Status TreeBuilder::check_plain(const Event& event) const {
  const yaml_char_t* anchor = nullptr;
  const yaml_char_t* tag = nullptr;
  switch (event->type) {
    case YAML_ALIAS_EVENT:
      return at(event->start_mark, fmt::format("aliases are not supported; write out the value "
                                               "that \"*{}\" stands for",
                                               text_of(event->data.alias.anchor)));
    case YAML_SCALAR_EVENT:
      anchor = event->data.scalar.anchor;
      tag = event->data.scalar.tag;
      break;
    case YAML_SEQUENCE_START_EVENT:
      anchor = event->data.sequence_start.anchor;
      tag = event->data.sequence_start.tag;
      break;
    case YAML_MAPPING_START_EVENT:
      anchor = event->data.mapping_start.anchor;
      tag = event->data.mapping_start.tag;
      break;
    default:
      return at(event->start_mark, "a value is expected here");
  }
  if (anchor != nullptr) {
    return at(event->start_mark, fmt::format("anchors are not supported; remove \"&{}\", and write "
                                             "the value out where it is used",
                                             text_of(anchor)));
  }
  if (tag != nullptr) {
    const bool is_plain =
        event->type == YAML_SCALAR_EVENT && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return at(event->start_mark, "tags are not supported; " + without_tag(text_of(tag), is_plain));
  }
  return {};
}

Status TreeBuilder::read_value(const Event& event, std::size_t depth, Value& into) {
  into.line_ = from_one(event->start_mark.line);
  into.column_ = from_one(event->start_mark.column);
  if (++nodes_ > kMaxNodes) {
    return at(event->start_mark, fmt::format("more than {} values", kMaxNodes));
  }
  TRY(check_plain(event));
  if (event->type == YAML_SCALAR_EVENT) {
    const auto& scalar = event->data.scalar;
    into.text_.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
    into.kind_ = scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_kind(into.text_) : Kind::kString;
    return {};
  }
  if (depth >= kMaxDepth) {
    return at(event->start_mark, fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  return event->type == YAML_SEQUENCE_START_EVENT ? read_list(depth + 1, into)
                                                  : read_map(depth + 1, into);
}

Status TreeBuilder::read_list(std::size_t depth, Value& into) {
  into.kind_ = Kind::kList;
  while (true) {
    Event event;
    TRY(next(event));
    if (event->type == YAML_SEQUENCE_END_EVENT) {
      return {};
    }
    TRY(read_value(event, depth, into.items_.emplace_back()));
  }
}

Status TreeBuilder::read_map(std::size_t depth, Value& into) {
  into.kind_ = Kind::kMap;
  std::map<std::string, int> seen;  // key → line, so that a long map costs no square
  while (true) {
    Event event;
    TRY(next(event));
    if (event->type == YAML_MAPPING_END_EVENT) {
      return {};
    }
    TRY(read_entry(event, depth, seen, into));
  }
}

Status TreeBuilder::read_entry(const Event& key_event, std::size_t depth,
                               std::map<std::string, int>& seen, Value& into) {
  if (key_event->type != YAML_SCALAR_EVENT) {
    return at(key_event->start_mark, "a key must be plain or quoted text");
  }
  TRY(check_plain(key_event));
  const auto& scalar = key_event->data.scalar;
  std::string key(reinterpret_cast<const char*>(scalar.value), scalar.length);
  const int line = from_one(key_event->start_mark.line);
  if (key.empty() && scalar.style == YAML_PLAIN_SCALAR_STYLE) {
    return at(key_event->start_mark, "a key is missing before \":\"");
  }
  if (has_invisible(key)) {
    return at(key_event->start_mark,
              fmt::format("an invisible character is in the key \"{}\" or before it; type the "
                          "beginning of the line again",
                          key));
  }
  if (key == "<<" && scalar.style == YAML_PLAIN_SCALAR_STYLE) {
    return at(
        key_event->start_mark,
        "merge keys are not supported; write the entries that \"<<\" stands for in its place");
  }
  const auto [first, is_new] = seen.emplace(key, line);
  if (!is_new) {
    return at(key_event->start_mark,
              fmt::format("key \"{}\" is given twice; first in line {}", key, first->second));
  }
  Event event;
  TRY(next(event));
  Value& value = into.entries_.emplace_back(std::move(key), Value{}).second;
  TRY(read_value(event, depth, value));
  value.key_line_ = line;
  value.key_column_ = from_one(key_event->start_mark.column);
  return {};
}

Result<Document> TreeBuilder::build() {
  Value root;
  bool have_document = false;
  while (true) {
    Event event;
    TRY(next(event));
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
    TRY(read_value(event, 0, root));
  }
}

Result<Document> parse(std::string_view text, const std::string& file_name) {
  if (text.size() > kMaxBytes) {
    return Error{Code::kInvalid, fmt::format("{}:1:1: longer than {} bytes", file_name, kMaxBytes)};
  }
  const auto readable = utf8_text(text);
  if (!readable) {
    return readable.error().with_prefix(fmt::format("{}:1:1", file_name));
  }
  return TreeBuilder{*readable, file_name}.build();
}

}  // namespace slurmlet::yaml
