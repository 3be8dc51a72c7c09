#pragma once

// YAML 1.2 (and JSON, its subset) read into a tree of values that remember where they stood, so
// that whoever checks the content can say FILE:LINE:COL. Over libyaml's event API.
//
// Plain scalars are typed by the core schema (https://yaml.org/spec/1.2.2/#103-core-schema): null,
// true/false, integers, floats; yes/no/on/off are strings. Quoted and block scalars are strings.
// The text of a scalar is always kept, so an unquoted version 1.10 can still be read as text().
//
// Rejected, with position: anchors, aliases and tags, a key given twice, more than one document,
// nesting deeper than kMaxDepth, more than kMaxBytes or kMaxNodes, keys that are not scalars or
// have an invisible character in them, the merge key "<<". A byte order mark is passed over.
//
// Values are plain data: safe to copy, and to read from several threads.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace slurmlet::yaml {

inline constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxDepth = 64;
inline constexpr std::size_t kMaxNodes = 100'000;

enum class Kind { kNull, kBool, kInt, kDouble, kString, kList, kMap };
// For people: "null", "true or false", "a whole number", "a number", "text", "a list", "a map".
const char* to_string(Kind kind);

class Value {
 public:
  using Entry = std::pair<std::string, Value>;

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_map() const { return kind_ == Kind::kMap; }
  bool is_list() const { return kind_ == Kind::kList; }
  bool is_scalar() const { return !is_map() && !is_list(); }

  // Where the value starts, from 1.
  int line() const { return line_; }
  int column() const { return column_; }
  // Where the key of this value stands when it is an entry of a map, else 0.
  int key_line() const { return key_line_; }
  int key_column() const { return key_column_; }

  // The value of `key`; nullptr when this is no map or has no such key.
  const Value* find(std::string_view key) const;
  // The elements of a list, else empty.
  const std::vector<Value>& items() const { return items_; }
  // The entries of a map in the order of the file, else empty.
  const std::vector<Entry>& entries() const { return entries_; }

  // The scalar as it stands in the file, escapes resolved; "" for lists and maps.
  const std::string& text() const { return text_; }
  // The value if it is of that kind, else nothing.
  std::optional<std::string> as_string() const;
  std::optional<std::int64_t> as_int() const;
  std::optional<bool> as_bool() const;

 private:
  friend class TreeBuilder;
  Kind kind_ = Kind::kNull;
  int line_ = 1;
  int column_ = 1;
  int key_line_ = 0;
  int key_column_ = 0;
  std::string text_;
  std::vector<Value> items_;
  std::vector<Entry> entries_;
};

class Document {
 public:
  Document(std::string file_name, Value root)
      : file_name_(std::move(file_name)), root_(std::move(root)) {}
  // An empty file has a null root.
  const Value& root() const { return root_; }
  // "FILE:LINE:COL" of a value, and of its key (the value's own place when it has no key).
  std::string where(const Value& value) const;
  std::string where_key(const Value& value) const;

 private:
  std::string file_name_;
  Value root_;
};

// kInvalid with "FILE:LINE:COL: what is wrong". `file_name` is for messages only.
Result<Document> parse(std::string_view text, const std::string& file_name);

}  // namespace slurmlet::yaml
