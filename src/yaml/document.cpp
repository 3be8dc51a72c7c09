#include "yaml/document.h"

#include <fmt/format.h>

#include <array>

#include "yaml/scalar.h"

namespace slurmlet::yaml {

const char* to_string(Kind kind) {
  // In the order of Kind.
  static constexpr std::array<const char*, 7> kNames = {
      "null", "true or false", "a whole number", "a number", "text", "a list", "a map"};
  return kNames[static_cast<std::size_t>(kind)];
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : entries_) {
    if (name == key) {
      return &value;
    }
  }
  return nullptr;
}

std::optional<std::string> Value::as_string() const {
  return kind_ == Kind::kString ? std::optional{text_} : std::nullopt;
}

std::optional<std::int64_t> Value::as_int() const {
  return kind_ == Kind::kInt ? core_int(text_) : std::nullopt;
}

std::optional<bool> Value::as_bool() const {
  if (kind_ != Kind::kBool) {
    return std::nullopt;
  }
  return text_[0] == 't' || text_[0] == 'T';
}

std::string Document::where(const Value& value) const {
  return fmt::format("{}:{}:{}", file_name_, value.line(), value.column());
}

std::string Document::where_key(const Value& value) const {
  if (value.key_line() == 0) {
    return where(value);
  }
  return fmt::format("{}:{}:{}", file_name_, value.key_line(), value.key_column());
}

}  // namespace slurmlet::yaml
