#include "cli/secrets.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace slurmlet::cli {
namespace {

constexpr std::string_view kRemoved = "[removed]";

// In lower case, with the sign that must follow.
constexpr std::array<std::string_view, 5> kCarriers{
    "munge:aw", "authorization:", "x-slurm-user-token:", "x-slurm-user-token=", "slurm_jwt="};

bool is_token_char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

// Where a JWT that begins at `at` ends; `at` if none does. "eyJ" is base64 of '{"', as each begins.
std::size_t token_end(std::string_view text, std::size_t at) {
  constexpr std::size_t kShortest = 20;
  if (text.substr(at, 3) != "eyJ") {
    return at;
  }
  std::size_t end = at;
  while (end < text.size() && is_token_char(text[end])) {
    ++end;
  }
  return end - at >= kShortest ? end : at;
}

}  // namespace

std::string without_secrets(std::string_view text) {
  const std::string lower = to_lower(text);
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto carrier = std::find_if(kCarriers.begin(), kCarriers.end(), [&](const auto& name) {
      return std::string_view{lower}.substr(at, name.size()) == name;
    });
    if (carrier != kCarriers.end()) {
      out += text.substr(at, carrier->size());
      out += kRemoved;
      at = std::min(text.find_first_of("\r\n", at), text.size());
      continue;
    }
    if (const std::size_t end = token_end(text, at); end > at) {
      out += kRemoved;
      at = end;
      continue;
    }
    out += text[at++];
  }
  return out;
}

void remove_secrets(nlohmann::ordered_json& document) {
  if (document.is_string()) {
    document = without_secrets(document.get_ref<const std::string&>());
    return;
  }
  if (document.is_structured()) {
    for (auto& value : document) {
      remove_secrets(value);
    }
  }
}

}  // namespace slurmlet::cli
