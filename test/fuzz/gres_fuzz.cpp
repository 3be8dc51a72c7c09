// Fuzzes the grammars of Gres strings and node states (slurm/answers/gres.h,
// slurm/answers/state.h): the first byte chooses which.
//
// Beside what the sanitizers find: what was read and is written again as Slurm writes it reads as
// the same; counts are never negative, and those of one name and type stand together.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/plain_text.h"
#include "slurm/answers/gres.h"
#include "slurm/answers/state.h"

namespace {

using slurmlet::node::Gres;
using slurmlet::node::SlurmState;

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

std::string written(const std::vector<Gres>& entries) {
  std::string out;
  for (const Gres& gres : entries) {
    out += out.empty() ? "" : ",";
    out += gres.name + (gres.type.empty() ? "" : ":" + gres.type);
    out += (gres.no_consume ? ":no_consume:" : ":") + std::to_string(gres.count);
    out += gres.shares.empty() ? "" : "(" + gres.shares + ")";
    out += gres.indices.empty() ? "" : "(IDX:" + gres.indices + ")";
    out += gres.sockets.empty() ? "" : "(S:" + gres.sockets + ")";
  }
  return out;
}

// Signs of the grammar in a name or a type: no Gres string of Slurm, nothing to be written again.
bool is_plain(const Gres& gres) {
  const std::string words = gres.name + gres.type + gres.sockets + gres.indices + gres.shares;
  return words.find_first_of("():; \t\r\n\v\f") == std::string::npos &&
         (gres.name + gres.type).find(',') == std::string::npos;
}

void check_gres(std::string_view text) {
  const std::string valid = slurmlet::valid_utf8(text);
  const std::vector<Gres> entries = slurmlet::slurm::parse_gres(text);
  std::set<std::pair<std::string, std::string>> kinds;
  for (const Gres& gres : entries) {
    require(!gres.name.empty() && gres.count >= 0);
    require(kinds.emplace(gres.name, gres.type).second);
    require(gres.name.size() + gres.type.size() <= valid.size());
  }
  if (std::all_of(entries.begin(), entries.end(), is_plain)) {
    require(slurmlet::slurm::parse_gres(written(entries)) == entries);
  }
}

void check_state(std::string_view text) {
  const SlurmState state = slurmlet::slurm::parse_state(text);
  require(!state.has(state.base) || state.base.empty());
  for (const auto& flag : state.flags) {
    require(!flag.empty());
  }
  // Of words as Slurm's are; other signs at the end of a word go one at a time.
  const std::string raw = state.raw();
  if (raw.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+?") == std::string::npos) {
    require(slurmlet::slurm::parse_state(raw) == state);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view text{reinterpret_cast<const char*>(data) + 1, size - 1};
  if (data[0] % 2 == 0) {
    check_gres(text);
  } else {
    check_state(text);
  }
  return 0;
}
