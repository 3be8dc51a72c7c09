#pragma once

// Which version of slurmrestd's API to use. A release serves three or four neighbours (22.05:
// v0.0.36 to 38, 25.11: v0.0.41 to 44), no version is served by all, and there is no small document
// that lists them: GET /openapi/v3 makes slurmrestd write its whole specification (82 kB for a
// single version in 22.05). So the newest version known here is tried first and then downwards,
// each at the price of a 404 of 69 bytes: 25.11 costs one once, 22.05 seven. What answered is
// remembered until it is no longer served, or the answers come from another release. Pure.

#include <cstdint>
#include <string>

namespace slurmlet::slurm {

class RestVersions {
 public:
  static constexpr int kOldest = 36;
  static constexpr int kNewest = 45;
  // Slurm 23.02 and 23.11 answer this one with 500 when they have no slurmdbd.
  static constexpr int kNeedsDatabase = 39;

  // The one to use: 44 of v0.0.44.
  int candidate() const { return candidate_; }
  // Whether it has answered before.
  bool known() const { return known_; }

  // The server does not serve candidate(). True when there is another to try now; one that was
  // known starts the search over.
  bool not_served() {
    if (known_) {
      forget();
      return true;
    }
    if (candidate_ == kOldest) {
      forget();
      return false;
    }
    --candidate_;
    return true;
  }
  // `version` has answered about a node; `release` is what the answer says of the server, "25.11.8"
  // or "". Another release than before is searched anew with the next query.
  void answered(int version, const std::string& release) {
    candidate_ = version;
    known_ = true;
    const bool upgraded = !release.empty() && !release_.empty() && release != release_;
    if (!release.empty()) {
      release_ = release;
    }
    if (upgraded) {
      forget();
    }
  }
  // The server went away: while nothing is known, a search begins anew with the next query.
  void unreachable() {
    if (!known_) {
      forget();
    }
  }

 private:
  void forget() {
    known_ = false;
    candidate_ = kNewest;
  }

  int candidate_ = kNewest;
  bool known_ = false;
  std::string release_;
};

// "v0.0.44"
inline std::string api_version_name(int version) { return "v0.0." + std::to_string(version); }

// The value of update_time: v0.0.42 and those before v0.0.39 take seconds, those between only words
// of Slurm's own ("uts1795452630"), of which seconds are none.
inline std::string update_time(int version, std::int64_t seconds) {
  const bool takes_uts = version >= 39 && version <= 41;
  return (takes_uts ? "uts" : "") + std::to_string(seconds);
}

}  // namespace slurmlet::slurm
