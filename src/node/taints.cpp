#include "node/taints.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "node/labels.h"
#include "node/vocabulary.h"

namespace slurmlet::node {
namespace {

Error bad(std::string_view taint, std::string_view why) {
  return {Code::kInvalid, fmt::format("has the taint \"{}\": {}", taint, why)};
}

Result<Taint> parse_taint(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return bad(text, "it must be KEY=VALUE:EFFECT or KEY:EFFECT");
  }
  const std::string_view front = text.substr(0, colon);
  const auto equals = front.find('=');
  Taint out;
  out.key = front.substr(0, equals);
  out.value = equals == std::string_view::npos ? "" : front.substr(equals + 1);
  out.effect = text.substr(colon + 1);
  if (out.effect != "NoSchedule" && out.effect != "PreferNoSchedule" && out.effect != "NoExecute") {
    return bad(text, "the effect must be NoSchedule, PreferNoSchedule or NoExecute");
  }
  if (const auto problem = label_key_problem(out.key)) {
    return bad(text, *problem);
  }
  if (const auto problem = label_value_problem(out.value)) {
    return bad(text, *problem);
  }
  if (out.key == vocabulary::kTaintKey) {
    return bad(text, "slurmlet always sets taints of this key");
  }
  return out;
}

}  // namespace

Result<std::vector<Taint>> parse_taints(std::string_view text) {
  std::vector<Taint> out;
  for (const auto part : split(text, ',')) {
    if (trim(part).empty()) {
      continue;
    }
    auto taint = TRY(parse_taint(trim(part)));
    const bool twice = std::any_of(out.begin(), out.end(), [&](const Taint& other) {
      return other.key == taint.key && other.effect == taint.effect;
    });
    if (twice) {
      return bad(trim(part), "another taint has the same key and effect");
    }
    out.push_back(std::move(taint));
  }
  return out;
}

}  // namespace slurmlet::node
