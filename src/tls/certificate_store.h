#pragma once

// One rotating certificate with its key on disk, laid out as the kubelet's certificate store:
//
//   DIR/NAME-2026-11-21-12-00-00.pem   certificate chain and private key, 0600
//   DIR/NAME-current.pem               symbolic link to the newest of them, swapped by rename(2)
//   DIR/NAME.key.tmp                   key of the request under way, 0600
//
// A crash at any moment leaves either the old or the new pair, and the key of a request that was
// sent: the next start goes on with the same key, hence with the same request. A pending key that
// is the current certificate's own is what a crash at the very end of accept() leaves; it counts as
// none. The directory is made with 0700 where it is missing. Of the dated files the newest two are
// kept, the current one always. Errors name the file. Not thread-safe; one process at a time.

#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "tls/client_identity.h"

namespace slurmlet::tls {

struct StoredCertificate {
  std::string certificate_pem;  // leaf first, intermediates after it
  std::string key_pem;
  CertificateSummary summary;
  // When it came here; a signer may date not_before back by more than a short life lasts.
  WallTime stored_at{};
};

class CertificateStore {
 public:
  CertificateStore(std::filesystem::path directory, std::string name);

  // Nothing if there is none yet; kInvalid if the file is there but holds no pair, or is a link to
  // nowhere; kDenied if it cannot be read.
  Result<std::optional<StoredCertificate>> current() const;
  std::filesystem::path current_path() const;

  // The key to request with: that of a request under way, else a fresh one, on disk before it is
  // returned. A pending file that holds no key (a torn write of somebody else) is replaced.
  Result<std::string> pending_key();
  bool has_pending_key() const;
  // Drops it, or what is there instead of one: the next request is made with another key.
  Status discard_pending_key();

  // Makes `certificate_pem` (leaf first) with the pending key the current one, which ends the
  // request under way. kInvalid when they are no pair, kNotFound without a pending key; either
  // changes nothing. The file's name is the time, a second or more later if that one is taken.
  Result<StoredCertificate> accept(const std::string& certificate_pem, WallTime now);

 private:
  std::filesystem::path pending_path() const;
  std::filesystem::path dated_path(WallTime time) const;
  bool is_dated(const std::string& file) const;
  bool is_leftover(const std::string& file) const;
  // The pending file's key, nothing if it holds none or that of the current certificate.
  Result<std::optional<std::string>> read_pending() const;
  Status swap_current(const std::string& target) const;
  // Removes dated files but the newest two, and what a crash left. Failures can wait for the next
  // time.
  void prune(const std::string& current) const;

  std::filesystem::path directory_;
  std::string name_;
};

}  // namespace slurmlet::tls
