#pragma once

// Keeps one certificate valid by certificate signing requests: the node's client certificate
// (bootstrap and renewal) or its serving certificate. Both are the same machine:
//
//   idle ──due──► asking ──► waiting ──issued──► idle
//     ▲                        │ denied, failed, deleted, timed out
//     └────── back-off ◄───────┘
//
// Due: none is there; a random 70 to 90 % of its life is over; or the subject changed and then
// stayed the same for a minute, or for longer if it changes often. The key is
// on disk before the request is sent and the request's name is made from the key, so that a restart
// at any moment goes on with the same request. While a request waits for approval nothing is sent:
// a watch reports it. A denied or failed request is made again with another key after a back-off
// that grows from ten seconds to an hour; a deleted one with the same key.
//
// The store's directory may hang: each use of it is waited for half a second at most. What came too
// late is on disk all the same, so the store is read again first.
//
// A step object; not thread-safe.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/delay.h"
#include "base/detached_task.h"
#include "kube/certificate_api.h"
#include "tls/certificate_store.h"
#include "tls/certificates.h"

namespace slurmlet::credentials {

struct CertificateSyncOptions {
  std::string what;  // "client certificate", "serving certificate": for the log
  std::string signer_name;
  std::vector<std::string> usages;  // "digital signature", "client auth" | "server auth"
  std::string node_name;            // for the fix in messages
  // While the API server does not answer. Short where nothing goes on before there is one.
  Delay unanswered = Delay::kCertificateRetry;
  std::chrono::seconds lifetime{0};  // to request; 0 = the signer's choice
};

// For metrics, /readyz and people.
struct CertificateStatus {
  std::optional<WallTime> not_after;      // of the current certificate
  std::string request_name;               // of the request under way
  std::optional<WallTime> pending_since;  // a request waits for approval
  std::string problem;                    // why there is no (new) certificate; "" if all is well
  std::uint64_t requests = 0, denied = 0, renewals = 0;
};

// The certificates this daemon shows, for metrics, status and health.
struct CertificateReport {
  std::optional<WallTime> client_not_after;          // nothing when a token is used
  std::optional<CertificateStatus> client_requests;  // while this daemon renews it
  std::optional<WallTime> serving_not_after;
  std::optional<CertificateStatus> serving_requests;
  bool serving_self_signed = false;
  std::string client_problem;  // why the API server does not take us; "" if it does
  std::uint64_t reload_failures = 0;
};

// The subject of a certificate, once that has stayed the same for a while.
class SettledSubject {
 public:
  explicit SettledSubject(const Random& random) : backoff_(Delay::kCertificateChange, random) {}

  void set(std::optional<tls::CertificateSubject> subject);
  // Whether it is another one now; not for the first.
  bool settle(SteadyTime now);
  // When settle() is due; kNever while nothing changes.
  SteadyTime due() const;
  const std::optional<tls::CertificateSubject>& get() const { return subject_; }

 private:
  std::optional<tls::CertificateSubject> subject_;  // normalized
  std::optional<tls::CertificateSubject> wanted_;   // normalized; may still change
  std::optional<SteadyTime> since_;                 // that it has been another than subject_
  SteadyTime not_before_{};
  Backoff backoff_;  // it changes again and again
};

class CertificateSync {
 public:
  using Issued = std::function<void(const tls::StoredCertificate&)>;

  CertificateSync(kube::CertificateApi& api, tls::CertificateStore store,
                  CertificateSyncOptions options, Random random, Issued issued);

  // Nothing (the start) = not known yet, request none.
  void set_subject(std::optional<tls::CertificateSubject> subject);

  // Reads the store when first called. `issued` is called with the current certificate then, and
  // with each new one.
  SteadyTime step(Now now);

  CertificateStatus status() const;

 private:
  // A request that is approved automatically is decided within it: no need to call for a person.
  static constexpr std::chrono::seconds kApprovalGrace{10};

  // A request that the API server holds.
  struct Submitted {
    std::string name, uid;
    std::string key_pem;
    tls::CertificateSubject subject;
    SteadyTime since{};
    bool approved = false;
    bool reminded = false;  // that it waits
    std::unique_ptr<kube::Watch<kube::CertificateRequest>> watch = {};
    SteadyTime watch_next = kNever;
  };
  // One whose certificate was issued and is perhaps in the store.
  struct Late {
    std::string key_pem;
    tls::CertificateSubject subject;
  };
  // When to request again.
  struct Retry {
    Backoff call;  // the API server or the disk does not do it
    Backoff unanswered;
    Backoff rejection;  // a request was denied or failed, or what came of it is no use
    SteadyTime next{};
    void reset_calls() {
      call.reset();
      unanswered.reset();
    }
  };
  struct Current {
    tls::StoredCertificate certificate;
    std::optional<tls::CertificateSubject> subject;  // of its request; else what it says
    WallTime renew_at{};
  };

  template <typename Work>
  auto in_store(Work work);
  SteadyTime step_request(Now now);
  void load(Now now);
  void use(tls::StoredCertificate certificate, std::optional<tls::CertificateSubject> subject,
           Now now);
  bool is_valid(Now now) const;
  bool is_due(Now now) const;
  SteadyTime until_due(Now now) const;
  void submit(Now now);
  void find(const kube::CertificateRequest& ours, const std::string& key, Now now);
  void wait_for(const kube::CertificateRequest& request, const std::string& key, Now now);
  void follow(Now now);
  void read_event(const kube::WatchEvent<kube::CertificateRequest>& event, Now now);
  void take(const kube::CertificateRequest& request, Now now);
  void accept(const std::string& certificate_pem, Now now);
  void finish(tls::StoredCertificate stored, tls::CertificateSubject subject, Now now);
  void reject(const std::string& why, Now now);
  void lose(Now now);
  void fail(const Error& error, Now now);
  void remind(Now now);
  void forget_request();
  void drop_key();
  void complain(const std::string& problem, Now now);
  void say(void (*write)(const std::string&), const std::string& what);
  std::string title() const;

  kube::CertificateApi& api_;
  tls::CertificateStore store_;
  DetachedTask<Status> store_call_;
  CertificateSyncOptions options_;
  Random random_;
  Issued issued_;
  Retry retry_;
  SettledSubject subject_;
  std::optional<std::string> store_problem_{""};  // nothing: what the store holds is known
  std::optional<Late> late_;
  std::optional<Current> current_;
  std::optional<Submitted> submitted_;
  std::string said_;  // last line of the log
  CertificateStatus status_;
};

}  // namespace slurmlet::credentials
