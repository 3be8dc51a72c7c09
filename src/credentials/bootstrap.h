#pragma once

// How a node without a credential of its own gets one: with the bootstrap token, by a certificate
// signing request that somebody approves
// (https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/). Leaves the
// key and certificate in kubernetes.certDir and a kubeconfig that names them.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/delay.h"
#include "base/file_watch.h"
#include "base/result.h"
#include "config/settings.h"
#include "credentials/access.h"
#include "credentials/certificate_sync.h"
#include "http/client.h"
#include "kube/certificate_api.h"
#include "kube/request_counter.h"
#include "tls/certificate_store.h"

namespace slurmlet::credentials {

// The settings with the bootstrap credential in the place of the node's. `discovered_ca`: PEM, "" =
// none was discovered.
config::Settings as_bootstrap(const config::Settings& settings,
                              const std::string& discovered_ca = "");

// What a bootstrap needs: its kubeconfig or token, and the CA. Another one is worth another try.
std::vector<std::filesystem::path> bootstrap_files(const config::Settings& settings);

// Whether the kubeconfig cannot be used as it is: missing, broken, with a client certificate that
// expired or is for another node; no server is queried. Its reason, for the log; "" if there is no
// need.
std::string bootstrap_need(const config::Settings& settings, const std::string& node_name,
                           WallTime now);

// Where a bootstrap keeps the kubeconfig that it replaces.
std::string replaced_kubeconfig(const std::string& kubeconfig);

// Asks for a credential and waits for its approval however long it takes, and for the API server, a
// valid token or a usable kubeconfig likewise. A step object; its calls end at once when `abort_fd`
// becomes readable. Not thread-safe.
class Bootstrap {
 public:
  // References must outlive it.
  Bootstrap(const config::Settings& settings, std::string node_name, const Clock& clock,
            kube::RequestCounter& requests, int abort_fd);

  // Not called when it is done.
  SteadyTime step(Now now);
  // There is a credential: the kubeconfig can be used.
  bool done() const { return done_; }
  // Waits for the time, the API server, one of `fds`, or a file that a bootstrap needs.
  void wait(SteadyTime until, std::vector<int> fds);

  std::string server() const;
  // Why there is no connection, or why the kubeconfig cannot be written.
  const std::optional<Error>& problem() const { return problem_; }
  std::optional<CertificateStatus> request() const;

 private:
  // With the bootstrap credential.
  struct Connected {
    Connected(ApiAccess used, std::unique_ptr<http::Client> made, const Bootstrap& owner,
              CertificateSyncOptions options, CertificateSync::Issued issued);
    ApiAccess access;
    std::unique_ptr<http::Client> client;
    kube::RestCertificateApi api;
    CertificateSync sync;
  };
  Status open();
  Status write_kubeconfig() const;
  SteadyTime failed(const Error& error, const std::string& what, bool by_itself);
  bool is_of_use(WallTime now) const { return bootstrap_need(settings_, node_name_, now).empty(); }
  bool is_issued(WallTime now) const;

  const config::Settings& settings_;
  std::string node_name_;
  const Clock& clock_;
  kube::RequestCounter& requests_;
  int abort_fd_;
  tls::CertificateStore store_;
  Backoff backoff_;
  FileWatch files_;
  bool was_of_no_use_;     // the kubeconfig; else it is the API server that rejects it
  SteadyTime next_try_{};  // to connect, or to write the kubeconfig
  std::optional<Error> problem_;

  std::string discovered_ca_;
  std::unique_ptr<Connected> connected_;
  std::optional<tls::CertificateSummary> held_;  // what the store holds
  bool done_ = false;
};

// When a credential that the API server rejects is given up for another bootstrap: at once the
// first time, then after pauses that grow from a minute to an hour, so that a server that rejects
// everybody is not asked over and over; and at once when somebody puts another token there. Not
// thread-safe.
class BootstrapPause {
 public:
  // `files`: what a bootstrap needs (bootstrap_files()).
  BootstrapPause(std::vector<std::filesystem::path> files, Random random);

  // A bootstrap has been tried.
  void tried(SteadyTime now);
  // The credential is rejected, now or still: from when on a bootstrap may be tried.
  SteadyTime rejected();
  // The credential is accepted; the files are read no more.
  void accepted() { watch_.reset(); }
  // Readable when the files may have changed; -1 unless the credential is rejected.
  int fd() const { return watch_ ? watch_->fd() : -1; }

 private:
  std::vector<std::filesystem::path> files_;
  Backoff backoff_;
  SteadyTime until_{};
  std::optional<FileWatch> watch_;  // while the credential is rejected
};

// Whether the API server takes the bootstrap token: one query that changes nothing. Made before
// a certificate that looks good is given up, since a server that rejects everybody for a while must
// not cost a fleet its credentials.
Status probe_bootstrap(const config::Settings& settings, int abort_fd, const Clock& clock,
                       kube::RequestCounter& requests);

// Forgets the certificate that the API server rejects, so that the next bootstrap asks for another.
// Its file stays, only the link to it goes.
Status discard_certificate(const config::Settings& settings);

}  // namespace slurmlet::credentials
