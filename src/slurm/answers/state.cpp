#include "slurm/answers/state.h"
#include "slurm/answers/values.h"

#include <algorithm>
#include <array>
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
    {"INVAL", "UNKNOWN", "INVALID_REG"},
    {"EXT", "UNKNOWN", "EXTERNAL"},
    // Printed alone only for a node in UNKNOWN with just this flag.
    {"POW_DN", "UNKNOWN", "POWER_DOWN"},
    {"POWRING_DN", "UNKNOWN", "POWERING_DOWN"},
    {"POWERED_DN", "UNKNOWN", "POWERED_DOWN"},
    {"POW_UP", "UNKNOWN", "POWER_UP"},
    {"CANCEL_REBOOT", "UNKNOWN", "REBOOT_CANCEL"},
    {"CANC_R", "UNKNOWN", "REBOOT_CANCEL"},
    {"RESM", "UNKNOWN", "RESUME"},
    // Words of releases before 22.05.
    {"NO_RESPOND", "UNKNOWN", "NOT_RESPONDING"},
    {"RES", "IDLE", "RESERVED"},
});

// Flags under their own names, as complete forms and REST lists have them (slurm/slurm.h,
// NODE_STATE_*, of 22.05 … 25.11). "?" stands for flags that the printing program does not know.
constexpr std::string_view kFlags =
    "BLOCKED CLOUD COMPLETING DRAIN DYNAMIC_FUTURE DYNAMIC_NORM EXTERNAL FAIL INVALID_REG "
    "MAINTENANCE NOT_RESPONDING PERFCTRS PLANNED POWERED_DOWN POWERING_DOWN POWERING_UP POWER_DOWN "
    "POWER_DRAIN POWER_UP REBOOT_CANCEL REBOOT_ISSUED REBOOT_REQUESTED RESERVED RESUME UNDRAIN ?";

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
const Word* find_word(const std::array<Word, N>& words, std::string_view word) {
  const auto at =
      std::find_if(words.begin(), words.end(), [&](const Word& row) { return row.word == word; });
  return at == words.end() ? nullptr : &*at;
}

// The flag that a word means beside others, "" for what is none. "DRAINING" beside another word is
// not Slurm's own flag, but its meaning is the flag.
std::string_view flag_of(std::string_view word) {
  if (has_word(kFlags, word)) {
    return word;
  }
  if (word == "REBOOT" || word == "BOOT") {
    return "REBOOT_REQUESTED";
  }
  const Word* compound = find_word(kCompounds, word);
  return compound == nullptr ? "" : compound->flag;
}

// Takes the sign off the word; "" when it has none.
std::string_view take_suffix(std::string_view& word) {
  const auto at = std::find_if(kSuffixes.begin(), kSuffixes.end(), [&](const auto& row) {
    return word.size() > 1 && row.first == word.back();
  });
  if (at == kSuffixes.end()) {
    return "";
  }
  word.remove_suffix(1);
  return at->second;
}

// A word that stands alone.
void take_single(std::string_view word, node::SlurmState& state) {
  if (const Word* known = find_word(kBases, word)) {
    state.base = known->base;
  } else if (word == "REBOOT" || word == "BOOT") {
    // "reboot^": issued, the node is DOWN; "reboot" and "reboot@": asked for, the node is idle.
    const bool issued = state.has("REBOOT_ISSUED");
    state.base = issued ? "DOWN" : "IDLE";
    state.flags.insert(issued ? "REBOOT_ISSUED" : "REBOOT_REQUESTED");
  } else if (const Word* compound = find_word(kCompounds, word)) {
    state.base = compound->base;
    state.flags.emplace(compound->flag);
  } else if (const auto flag = flag_of(word); !flag.empty()) {
    state.base = "UNKNOWN";
    state.flags.emplace(flag);
  } else {
    state.base = word;
  }
}

// The first is the base where no word that is known is one.
void take_unknown(const std::vector<std::string_view>& words, node::SlurmState& state) {
  if (state.base.empty() && !words.empty()) {
    state.base = words.front();
  }
  if (state.base.empty() && !state.flags.empty()) {
    state.base = "UNKNOWN";
  }
  for (const auto word : words) {
    if (word != state.base) {
      state.flags.emplace(word);
    }
  }
}

// Words joined by "+": one base and flags, in any order. Releases before 21.08 put a sign behind
// one of them ("IDLE*+DRAIN").
void take_many(const std::vector<std::string_view>& words, node::SlurmState& state) {
  std::vector<std::string_view> unknown;
  for (auto word : words) {
    if (const auto flag = take_suffix(word); !flag.empty()) {
      state.flags.emplace(flag);
    }
    const Word* base = find_word(kBases, word);
    if (word.empty()) {
      continue;
    }
    if (base != nullptr && state.base.empty()) {
      state.base = base->base;
    } else if (base != nullptr && state.base != base->base) {
      state.flags.emplace(base->base);
    } else if (const auto flag = flag_of(word); base == nullptr && !flag.empty()) {
      state.flags.emplace(flag);
    } else if (base == nullptr) {
      unknown.push_back(word);
    }
  }
  take_unknown(unknown, state);
}

}  // namespace

node::SlurmState parse_state(std::string_view text) {
  node::SlurmState state;
  const std::string upper = to_upper(trim(text));
  std::string_view rest = upper;
  if (const auto flag = take_suffix(rest); !flag.empty()) {
    state.flags.emplace(flag);
  }
  const auto words = split(rest, '+');
  if (words.size() == 1) {
    take_single(words.front(), state);
  } else {
    take_many(words, state);
  }
  return state;
}

bool is_state(std::string_view text) {
  const std::string upper = to_upper(trim(text));
  std::string_view rest = upper;
  take_suffix(rest);
  const auto words = split(rest, '+');
  return std::all_of(words.begin(), words.end(), [](std::string_view word) {
    take_suffix(word);
    return find_word(kBases, word) != nullptr || !flag_of(word).empty();
  });
}

std::set<std::string> hidden_by(std::string_view text) {
  std::string word = to_lower(trim(text));
  std::set<std::string> hidden;
  // NOT_RESPONDING is the last of the signs: any other one stands in its place.
  constexpr std::string_view kSigns = "~#!%$@^-";
  const bool has_sign = !word.empty() && kSigns.find(word.back()) != std::string_view::npos;
  if (has_sign) {
    hidden.insert("NOT_RESPONDING");
  }
  if (has_sign || word.ends_with('*')) {
    word.pop_back();
  }
  if (word == "drained" || word == "drain") {
    hidden.insert({"IDLE", "DOWN"});
  } else if (word == "inval") {
    hidden.insert({"IDLE", "DOWN", "MIXED", "ALLOCATED", "COMPLETING", "DRAIN", "FAIL",
                   "MAINTENANCE", "NOT_RESPONDING"});
  } else if (word == "reboot" || word == "boot") {
    hidden.insert({"DRAIN", "COMPLETING"});
  } else if (word == "completing" || word == "comp") {
    hidden.insert({"IDLE", "MIXED"});
  } else if (word == "fail") {
    hidden.insert({"IDLE", "MIXED", "DOWN", "COMPLETING"});
  } else if (word == "down" || word == "draining" || word == "drng" || word == "failing" ||
             word == "failg") {
    hidden.insert("COMPLETING");
  }
  return hidden;
}

}  // namespace slurmlet::slurm
