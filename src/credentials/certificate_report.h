#pragma once

// How the daemon's own certificates are, for metrics, status and health. Plain values.

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "credentials/certificate_sync.h"

namespace slurmlet::credentials {

// The certificates this daemon shows.
struct CertificateReport {
  std::optional<WallTime> client_not_after;          // nothing when a token is used
  std::optional<CertificateStatus> client_requests;  // while this daemon renews it
  std::optional<WallTime> serving_not_after;
  std::optional<CertificateStatus> serving_requests;
  bool serving_self_signed = false;
  std::string client_problem;  // why the API server does not take us; "" if it does
  std::uint64_t reload_failures = 0;
};

}  // namespace slurmlet::credentials
