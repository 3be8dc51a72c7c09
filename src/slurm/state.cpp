#include "slurm/state.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace slurmlet::slurm {
namespace {

struct Word {
  std::string_view word;
  std::string_view base;  // "" when the word is a flag alone
  std::string_view flag;  // "" when the word is a base alone
};

// Base states and their short forms; good alone and among other words.
constexpr std::array kBases = std::to_array<Word>({
    {"IDLE", "IDLE", ""},
    {"ALLOCATED", "ALLOCATED", ""},
    {"ALLOC", "ALLOCATED", ""},
    {"MIXED", "MIXED", ""},
    {"MIX", "MIXED", ""},
    {"DOWN", "DOWN", ""},
    {"ERROR", "ERROR", ""},
    {"FUTURE", "FUTURE", ""},
    {"FUTR", "FUTURE", ""},
    {"UNKNOWN", "UNKNOWN", ""},
    {"UNK", "UNKNOWN", ""},
});

// Words that sinfo prints alone for a base with a flag.
constexpr std::array kCompounds = std::to_array<Word>({
    {"DRAINING", "ALLOCATED", "DRAIN"},
    {"DRNG", "ALLOCATED", "DRAIN"},
    {"DRAINED", "IDLE", "DRAIN"},
    {"DRAIN", "IDLE", "DRAIN"},
    {"FAILING", "ALLOCATED", "FAIL"},
    {"FAILG", "ALLOCATED", "FAIL"},
    {"FAIL", "IDLE", "FAIL"},
    {"COMPLETING", "IDLE", "COMPLETING"},
    {"COMP", "IDLE", "COMPLETING"},
    {"MAINT", "IDLE", "MAINTENANCE"},
    {"MAINTENANCE", "IDLE", "MAINTENANCE"},
    {"RESERVED", "IDLE", "RESERVED"},
    {"RESV", "IDLE", "RESERVED"},
    {"PLANNED", "IDLE", "PLANNED"},
    {"PLND", "IDLE", "PLANNED"},
    {"BLOCKED", "IDLE", "BLOCKED"},
    {"BLOCK", "IDLE", "BLOCKED"},
    {"PERFCTRS", "IDLE", "PERFCTRS"},
    {"NPC", "IDLE", "PERFCTRS"},
    {"POWER_DOWN", "IDLE", "POWER_DOWN"},
    {"POWERING_DOWN", "IDLE", "POWERING_DOWN"},
    {"POW_DN", "IDLE", "POWERING_DOWN"},
    {"POWERED_DOWN", "IDLE", "POWERED_DOWN"},
    {"POWER_UP", "IDLE", "POWER_UP"},
    {"POWERING_UP", "IDLE", "POWERING_UP"},
    {"POW_UP", "IDLE", "POWERING_UP"},
    {"INVAL", "UNKNOWN", "INVALID_REG"},
    {"EXTERNAL", "UNKNOWN", "EXTERNAL"},
    {"EXT", "UNKNOWN", "EXTERNAL"},
});

// The one sign that sinfo may put behind a word.
constexpr std::array kSuffixes = std::to_array<std::pair<char, std::string_view>>({
    {'*', "NOT_RESPONDING"},
    {'~', "POWERED_DOWN"},
    {'#', "POWERING_UP"},
    {'!', "POWER_DOWN"},
    {'%', "POWERING_DOWN"},
    {'$', "MAINTENANCE"},
    {'@', "REBOOT_REQUESTED"},
    {'^', "REBOOT_ISSUED"},
    {'-', "PLANNED"},
    {'+', "COMPLETING"},
});

template <std::size_t N>
const Word* find(const std::array<Word, N>& words, std::string_view word) {
  const auto at =
      std::find_if(words.begin(), words.end(), [&](const Word& row) { return row.word == word; });
  return at == words.end() ? nullptr : &*at;
}

void take_suffix(std::string& text, node::SlurmState& state) {
  const auto at = std::find_if(kSuffixes.begin(), kSuffixes.end(),
                               [&](const auto& row) { return row.first == text.back(); });
  if (at != kSuffixes.end() && text.size() > 1) {
    text.pop_back();
    state.flags.emplace(at->second);
  }
}

// A word that stands alone.
void take_single(const std::string& word, node::SlurmState& state) {
  if (const Word* known = find(kBases, word)) {
    state.base = known->base;
  } else if (word == "REBOOT" || word == "BOOT") {
    // "reboot^": issued, the node is DOWN; "reboot" and "reboot@": asked for, the node is idle.
    const bool issued = state.has("REBOOT_ISSUED");
    state.base = issued ? "DOWN" : "IDLE";
    state.flags.insert(issued ? "REBOOT_ISSUED" : "REBOOT_REQUESTED");
  } else if (const Word* compound = find(kCompounds, word)) {
    state.base = compound->base;
    state.flags.emplace(compound->flag);
  } else {
    state.base = word;
  }
}

// Words joined by "+": one base and flags, in any order.
void take_many(const std::vector<std::string_view>& words, node::SlurmState& state) {
  std::vector<std::string> unknown;
  for (const auto word : words) {
    const Word* base = find(kBases, word);
    if (word.empty()) {
      continue;
    }
    if (base != nullptr && state.base.empty()) {
      state.base = base->base;
    } else if (base == nullptr) {
      const Word* compound = find(kCompounds, word);
      // "DRAINING" beside another word is not Slurm's own flag, but its meaning is the flag.
      unknown.emplace_back(compound != nullptr ? compound->flag : word);
    } else if (state.base != base->base) {
      state.flags.emplace(base->base);
    }
  }
  if (state.base.empty() && !unknown.empty()) {
    state.base = unknown.front();
    unknown.erase(unknown.begin());
  }
  state.flags.insert(unknown.begin(), unknown.end());
}

}  // namespace

node::SlurmState parse_state(std::string_view text) {
  node::SlurmState state;
  std::string upper = to_upper(trim(text));
  if (upper.empty()) {
    return state;
  }
  take_suffix(upper, state);
  const auto words = split(upper, '+');
  if (words.size() == 1) {
    take_single(upper, state);
  } else {
    take_many(words, state);
  }
  return state;
}

}  // namespace slurmlet::slurm
