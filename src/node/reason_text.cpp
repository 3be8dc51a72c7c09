#include "node/reason_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plain_text.h"
#include "base/rfc3339.h"
#include "base/text.h"

namespace slurmlet::node {
namespace {

// Half of a message: what follows the reason is shown as well.
constexpr std::size_t kMaxReasonBytes = kMaxPlainBytes / 2;

}  // namespace

std::string attribution(const SlurmNodeRecord& record) {
  std::string text;
  if (record.reason.empty()) {
    return text;  // a time may be left over from an earlier one
  }
  if (!record.reason_user.empty()) {
    text += " by " + record.reason_user;
  }
  if (record.reason_time) {
    text += " since " + rfc3339(*record.reason_time);
  }
  return text + fmt::format(": \"{}\"", plain_text(record.reason, kMaxReasonBytes));
}

std::string next_state(const SlurmNodeRecord& record) {
  std::string text = to_upper(record.next_state);
  std::replace(text.begin(), text.end(), ',', '+');
  const auto words = split(text, '+');
  for (const char* word : {"RESUME", "DOWN"}) {
    if (std::find(words.begin(), words.end(), word) != words.end()) {
      return word;
    }
  }
  return "";
}

}  // namespace slurmlet::node
