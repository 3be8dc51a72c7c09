#include "slurm/sources/rest_versions.h"

namespace slurmlet::slurm {

void RestVersions::forget() {
  known_ = false;
  candidate_ = kNewest;
}

bool RestVersions::not_served() {
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

void RestVersions::answered(int version, const std::string& release) {
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

void RestVersions::unreachable() {
  if (!known_) {
    forget();
  }
}

std::string api_version_name(int version) { return "v0.0." + std::to_string(version); }

std::string update_time(int version, std::int64_t seconds) {
  const bool takes_words = version >= 39 && version <= 41;
  return (takes_words ? "uts" : "") + std::to_string(seconds);
}

}  // namespace slurmlet::slurm
