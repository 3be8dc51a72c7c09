#include "credentials/certificate_sync.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/rfc3339.h"
#include "credentials/certificate_rules.h"

namespace slurmlet::credentials {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Wall-clock deadlines are checked again at least this often, since somebody may set the clock.
constexpr Duration kLongestWait = hours{1};
// Addresses come and go while a machine boots, or moves from one network to the other.
constexpr Duration kSettled = minutes{1};
// Whoever deletes a request sooner might do so with each.
constexpr Duration kLongLife = minutes{10};
constexpr Duration kStoreRetry = seconds{10};

}  // namespace

void SettledSubject::set(std::optional<tls::CertificateSubject> subject) {
  if (subject) {
    subject = normalized(*std::move(subject));
  }
  if (subject != wanted_) {
    wanted_ = std::move(subject);
    since_.reset();
  }
}

SteadyTime SettledSubject::due() const {
  return since_ ? std::max(*since_ + kSettled, not_before_) : kNever;
}

bool SettledSubject::settle(SteadyTime now) {
  if (wanted_ == subject_) {
    since_.reset();
    return false;
  }
  since_ = since_.value_or(now);
  const bool changed = subject_.has_value();
  if (changed && wanted_) {
    if (now < due()) {
      return false;
    }
    if (now - not_before_ > hours{4}) {
      backoff_.reset();
    }
    not_before_ = now + backoff_.next();
  }
  subject_ = wanted_;
  since_.reset();
  return changed;
}

CertificateSync::CertificateSync(kube::CertificateApi& api, tls::CertificateStore store,
                                 CertificateSyncOptions options, Random random, Issued issued)
    : api_(api),
      store_(std::move(store)),
      options_(std::move(options)),
      random_(std::move(random)),
      issued_(std::move(issued)),
      retry_{Backoff{Delay::kCertificateRetry, random_}, Backoff{options_.unanswered, random_},
             Backoff{Delay::kCertificateRejected, random_}},
      subject_(random_) {}

void CertificateSync::set_subject(std::optional<tls::CertificateSubject> subject) {
  subject_.set(std::move(subject));
}

template <typename Work>
auto CertificateSync::in_store(Work work) {
  auto answer = in_time_anew(store_call_, [store = store_, work]() mutable { return work(store); });
  if (!answer && answer.error().code == Code::kTimeout) {
    store_problem_ = answer.error().message;
    say(log::warning, *store_problem_);
  }
  return answer;
}

SteadyTime CertificateSync::step(Now now) {
  if (store_problem_) {
    load(now);
  }
  if (store_problem_) {
    return now.steady + kStoreRetry;
  }
  // The first subject after a start goes on with the key of a request of before.
  if (subject_.settle(now.steady)) {
    forget_request();
    drop_key();
    retry_.next = {};
  }
  return std::min(subject_.due(), step_request(now));
}

SteadyTime CertificateSync::step_request(Now now) {
  if (!subject_.get()) {
    return kNever;
  }
  if (submitted_) {
    follow(now);
  }
  if (!submitted_ && is_due(now) && now.steady >= retry_.next) {
    submit(now);
    if (submitted_) {
      follow(now);
    }
  }
  if (submitted_) {
    remind(now);
    return submitted_->reminded
               ? submitted_->watch_next
               : std::min(submitted_->watch_next, submitted_->since + kApprovalGrace);
  }
  return is_due(now) ? std::max(retry_.next, now.steady) : until_due(now);
}

// --- the certificate that is there

void CertificateSync::load(Now now) {
  store_problem_.reset();
  auto stored = in_store([](tls::CertificateStore& store) {
    // A daemon that was killed has left the key of the certificate that came, or half of one.
    if (!store.has_pending_key()) {
      static_cast<void>(store.discard_pending_key());
    }
    return store.current();
  });
  if (store_problem_) {
    return;
  }
  const auto late = std::exchange(late_, std::nullopt);
  if (!stored) {
    complain(stored.error().message, now);
  } else if (*stored && late && late->key_pem == (*stored)->key_pem) {
    finish(std::move(**stored), late->subject, now);
  } else if (*stored && !(current_ && current_->certificate.key_pem == (*stored)->key_pem)) {
    use(std::move(**stored), std::nullopt, now);
  }
}

void CertificateSync::use(tls::StoredCertificate certificate,
                          std::optional<tls::CertificateSubject> subject, Now now) {
  const WallTime renew_at = renewal_time(certificate, random_());
  status_.not_after = certificate.summary.not_after;
  current_ = Current{std::move(certificate), std::move(subject), renew_at};
  if (!is_valid(now)) {
    complain("it expired at " + rfc3339(*status_.not_after), now);
  }
  issued_(current_->certificate);
}

bool CertificateSync::is_valid(Now now) const {
  return current_ && now.wall < current_->certificate.summary.not_after;
}

bool CertificateSync::is_due(Now now) const {
  if (!current_ || now.wall >= current_->renew_at) {
    return true;
  }
  return current_->subject ? *current_->subject != *subject_.get()
                           : !names_exactly(current_->certificate.summary, *subject_.get());
}

SteadyTime CertificateSync::until_due(Now now) const {
  // Compared in wall time: a certificate may outlive what a steady time can hold.
  const WallTime horizon = now.wall + std::chrono::duration_cast<WallTime::duration>(kLongestWait);
  return now.steady + (std::min(current_->renew_at, horizon) - now.wall);
}

// --- requesting

void CertificateSync::submit(Now now) {
  const auto key = in_store([](tls::CertificateStore& store) { return store.pending_key(); });
  if (store_problem_) {
    return;
  }
  if (!key) {
    return fail(key.error(), now);
  }
  const auto digest = tls::public_key_digest(*key);
  auto pem = tls::make_certificate_request(*key, *subject_.get());
  if (!digest || !pem) {
    return fail(digest ? pem.error() : digest.error(), now);
  }
  kube::CertificateRequest wanted;
  wanted.name = certificate_request_name(*digest, options_.signer_name, *subject_.get());
  wanted.signer_name = options_.signer_name;
  wanted.request_pem = *std::move(pem);
  wanted.usages = options_.usages;
  wanted.expiration = options_.lifetime;
  const auto created = api_.create(wanted);
  if (created) {
    ++status_.requests;
    say(log::info, "submitted request " + wanted.name + " to " + wanted.signer_name);
    wait_for(*created, *key, now);
    if (submitted_) {
      submitted_->watch->watch_from(created->resource_version);
    }
  } else if (created.error().code == Code::kConflict) {
    find(wanted, *key, now);
  } else {
    fail(created.error(), now);
  }
}

// A request of that name is there: of ours before a restart, or of an answer that was lost.
void CertificateSync::find(const kube::CertificateRequest& ours, const std::string& key, Now now) {
  const auto found = api_.get(ours.name);
  if (!found) {
    return fail(found.error(), now);
  }
  const auto theirs = tls::request_public_key_digest(found->request_pem);
  const auto digest = tls::public_key_digest(key);
  if (!theirs || !digest || *theirs != *digest || found->signer_name != ours.signer_name) {
    return reject("request " + ours.name + " belongs to another client", now);
  }
  say(log::info, "continuing with request " + ours.name);
  wait_for(*found, key, now);
}

void CertificateSync::wait_for(const kube::CertificateRequest& request, const std::string& key,
                               Now now) {
  submitted_ = Submitted{request.name, request.uid, key, *subject_.get(), now.steady};
  status_.request_name = request.name;
  status_.pending_since = now.wall;
  status_.problem.clear();
  take(request, now);
  if (submitted_) {
    submitted_->watch = api_.watch(request.name);
  }
}

// --- waiting

void CertificateSync::follow(Now now) {
  std::vector<kube::WatchEvent<kube::CertificateRequest>> events;
  submitted_->watch_next = submitted_->watch->step(now, events);
  for (const auto& event : events) {
    read_event(event, now);
    if (!submitted_) {
      return;
    }
  }
  if (const auto error = submitted_->watch->last_error()) {
    complain("request " + submitted_->name + " cannot be watched: " + error->message, now);
  } else {
    status_.problem.clear();
  }
}

void CertificateSync::read_event(const kube::WatchEvent<kube::CertificateRequest>& event, Now now) {
  using Type = kube::WatchEvent<kube::CertificateRequest>::Type;
  if (event.objects.empty()) {
    if (event.type == Type::kReplaced) {
      lose(now);
    }
    return;
  }
  const kube::CertificateRequest& seen = event.objects.front();
  if (event.type == Type::kDeleted) {
    // News of an earlier request of that name says nothing of this one.
    if (seen.uid == submitted_->uid) {
      lose(now);
    }
  } else if (seen.uid != submitted_->uid) {
    lose(now);
  } else {
    take(seen, now);
  }
}

void CertificateSync::take(const kube::CertificateRequest& request, Now now) {
  if (request.denied || request.failed) {
    ++status_.denied;
    reject("request " + request.name + (request.denied ? " was denied" : " failed") +
               (request.message.empty() ? "" : ": " + request.message),
           now);
  } else if (!request.certificate.empty()) {
    accept(request.certificate, now);
  } else if (request.approved && !submitted_->approved) {
    submitted_->approved = true;
    submitted_->reminded = false;
  }
}

void CertificateSync::accept(const std::string& certificate_pem, Now now) {
  const std::string name = "the certificate of request " + submitted_->name;
  const auto summary = tls::read_certificate(certificate_pem, name);
  if (!summary) {
    return reject(summary.error().message, now);
  }
  if (!tls::is_pair(certificate_pem, submitted_->key_pem)) {
    return reject(name + " is rejected: it does not match this node's key", now);
  }
  if (const auto problem = issued_problem(*summary, submitted_->subject, now.wall);
      !problem.empty()) {
    return reject(name + " is rejected: " + problem, now);
  }
  auto stored = in_store([certificate_pem, wall = now.wall](tls::CertificateStore& store) {
    return store.accept(certificate_pem, wall);
  });
  if (!stored) {
    if (store_problem_) {
      late_ = Late{submitted_->key_pem, submitted_->subject};
      return forget_request();
    }
    store_problem_ = "";  // read it again
    return fail(stored.error(), now);
  }
  finish(*std::move(stored), submitted_->subject, now);
}

void CertificateSync::finish(tls::StoredCertificate stored, tls::CertificateSubject subject,
                             Now now) {
  status_.renewals += current_ ? 1 : 0;
  forget_request();
  status_.problem.clear();
  retry_.reset_calls();
  use(std::move(stored), std::move(subject), now);
  say(log::info, "issued, valid until " + rfc3339(*status_.not_after));
  if (is_due(now)) {
    // By our clock most of its life is over already: no flood of requests for that.
    retry_.next = now.steady + retry_.rejection.next();
  } else {
    retry_.rejection.reset();
    retry_.next = {};
  }
}

// --- what can go wrong

// This request will come to nothing: another key, later.
void CertificateSync::reject(const std::string& why, Now now) {
  forget_request();
  drop_key();
  complain(why, now);
  retry_.next = now.steady + retry_.rejection.next();
}

// Deleted by a person, or by the cluster's cleaner after a day: the same again.
void CertificateSync::lose(Now now) {
  complain("request " + submitted_->name +
               " was deleted before it was approved or denied; submitting it again",
           now);
  if (now.steady - submitted_->since > kLongLife) {
    retry_.reset_calls();
  }
  forget_request();
  retry_.next = now.steady + retry_.call.next();
}

// Nothing is wrong with the request; later, with the same key.
void CertificateSync::fail(const Error& error, Now now) {
  forget_request();
  if (error.code == Code::kCancelled) {  // by a signal
    retry_.next = now.steady;
    return;
  }
  complain(error.message, now);
  Backoff& backoff = error.unanswered() ? retry_.unanswered : retry_.call;
  retry_.next = now.steady + backoff.next(error.retry_after);
}

void CertificateSync::forget_request() {
  submitted_.reset();
  status_.request_name.clear();
  status_.pending_since.reset();
}

void CertificateSync::drop_key() {
  const Status dropped =
      in_store([](tls::CertificateStore& store) { return store.discard_pending_key(); });
  if (!dropped) {
    say(log::warning, dropped.error().message);
  }
}

}  // namespace slurmlet::credentials
