#include "operator/machines/drain_policy.h"

#include <fmt/format.h>

#include "config/duration.h"
#include "node/vocabulary.h"

namespace slurmlet::op {

std::optional<DrainPolicy> parse_drain_policy(std::string_view text) {
  constexpr std::string_view kDeadline = "deadline=";
  if (text == "wait" || text == "now") {
    return DrainPolicy{text == "now" ? DrainPolicy::Kind::kNow : DrainPolicy::Kind::kWait, {}};
  }
  const auto duration = text.starts_with(kDeadline)
                            ? config::parse_duration(text.substr(kDeadline.size()))
                            : std::nullopt;
  if (!duration || *duration < Duration::zero()) {
    return std::nullopt;
  }
  return DrainPolicy{DrainPolicy::Kind::kDeadline, *duration};
}

std::string drain_policy_text(const DrainPolicy& policy) {
  switch (policy.kind) {
    case DrainPolicy::Kind::kWait:
      return "wait";
    case DrainPolicy::Kind::kNow:
      return "now";
    case DrainPolicy::Kind::kDeadline:
      break;
  }
  return "deadline=" + config::format_duration(
                           std::chrono::duration_cast<std::chrono::milliseconds>(policy.deadline));
}

std::string drain_policy_problem(std::string_view text) {
  return text.empty() || parse_drain_policy(text)
             ? ""
             : fmt::format(
                   "{} must be wait, now or deadline=DURATION, not \"{}\", so wait is used; ",
                   node::vocabulary::kDrainPolicy, text);
}

}  // namespace slurmlet::op
