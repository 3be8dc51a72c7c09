#include "http/curl_client.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/delay.h"
#include "base/text.h"
#include "http/curl_handle.h"
#include "http/target.h"
#include "http/transfer.h"
#include "http/transfer_loop.h"

namespace slurmlet::http {
namespace {

// For the first call over a fresh connection while an old one is left.
constexpr long kTrialMilliseconds = 3000;

// Sets libcurl up once per process; thread-safe.
Status init_curl() {
  // Never cleaned up: other threads may be inside libcurl when the process ends.
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) {
    return Error{Code::kInternal,
                 std::string{"libcurl does not start: "} + curl_easy_strerror(code)};
  }
  return {};
}

SteadyTime steady_now() { return std::chrono::steady_clock::now(); }

// An empty pool for use by one thread; null when memory is short.
ConnectionPool make_pool() {
  CURLSH* share = curl_share_init();
  if (share == nullptr) {
    return nullptr;
  }
  ConnectionPool pool{share, [](CURLSH* handle) { curl_share_cleanup(handle); }};
  // One thread uses the pool, hence no lock functions.
  if (curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) != CURLSHE_OK) {
    return nullptr;
  }
  return pool;
}

// RFC 9110 section 5.6.2, "token".
bool is_token(std::string_view text) { return !text.empty() && all_alnum(text, "!#$%&'*+-.^_`|~"); }

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) == 0x7f;
  });
}

// kInvalid when a header of the request's own would end its line or is no header; not quoted.
Status check_headers(const Request& request) {
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || has_control(value)) {
      return Error{
          Code::kInvalid,
          request.method + " " + request.path +
              ": a header of the request contains a control character or has no valid name"};
    }
  }
  return {};
}

// Answers that suggest that this API server, not the request, is at fault.
bool is_server_fault(int status) { return status == 401 || status >= 500; }

class CurlClient final : public Client {
 public:
  CurlClient(CredentialSource source, std::shared_ptr<TransferLoop> loop, ConnectionLife life)
      : source_(std::move(source)), lifetime_(std::move(life)), loop_(std::move(loop)) {}

  // Switches to the current credentials. An error while they are unusable; then the previous ones
  // stay.
  Status refresh();
  bool usable() const { return static_cast<bool>(*loop_); }
  const std::shared_ptr<TransferLoop>& loop() const { return loop_; }

  Result<Response> call(const Request& request) override;
  std::unique_ptr<Stream> open_stream(const Request& request) override;
  std::vector<int> wait(SteadyTime until, const std::vector<int>& fds) override;
  void interrupt() override {
    interrupted_ = true;
    loop_->wake();
  }
  void set_abort_fd(int fd) override { abort_fd_ = fd; }
  void close_idle_connections() override {
    // Streams keep the old pool alive until they are done.
    if (auto fresh = make_pool()) {
      pool_ = std::move(fresh);
    }
  }
  std::string local_address() const override { return owner_.local_address; }

 private:
  Result<std::string> read_token() const;
  Result<std::string> ready(const Request& request);
  Status adopt(std::shared_ptr<const Credentials> fresh);
  bool renew_connections();
  void note_outcome(const Transfer& transfer);
  void drive(Transfer& transfer);

  CredentialSource source_;
  ConnectionLife lifetime_;
  SteadyTime renew_at_{};
  std::shared_ptr<const Credentials> credentials_;  // in use; null before the first refresh()
  std::shared_ptr<const Credentials> rejected_;     // the last given ones, if of no use
  Error rejection_;                                 // why
  std::shared_ptr<const Shared> shared_;            // made of credentials_
  int failures_ = 0;                                // of calls in a row
  int abort_fd_ = -1;
  std::atomic<bool> interrupted_ = false;
  Owner owner_;
  // After pool_, so that libcurl's multi handle goes first (that of siblings with the last).
  ConnectionPool old_pool_;  // until a call over pool_'s fresh connections has worked; else null
  ConnectionPool pool_;
  std::shared_ptr<TransferLoop> loop_;
};

Status CurlClient::refresh() {
  auto fresh = source_();
  if (fresh == rejected_ && rejected_) {
    return rejection_;
  }
  rejected_.reset();
  if (!fresh && !credentials_) {
    return Error{Code::kInternal, "an HTTP client without credentials"};
  }
  if (!fresh || fresh == credentials_) {
    return {};
  }
  const Status adopted = adopt(fresh);
  if (!adopted) {
    rejected_ = std::move(fresh);
    rejection_ = adopted.error();
  }
  return adopted;
}

Status CurlClient::adopt(std::shared_ptr<const Credentials> fresh) {
  auto target = TRY(make_target(fresh->endpoint));
  if (target.tls && !fresh->identity) {
    return Error{Code::kInternal, target.shown + ": https without a client identity"};
  }
  // A connection carries its identity, so the old pool must not be reused.
  auto pool = make_pool();
  if (!pool) {
    return Error{Code::kInternal, "libcurl cannot create a connection pool: out of memory"};
  }
  loop_->end_streams(owner_);
  pool_ = std::move(pool);
  old_pool_.reset();
  renew_at_ = steady_now() + lifetime_();
  if (!shared_ || shared_->target.name != target.name) {
    owner_.peer.clear();
  }
  shared_ = std::make_shared<const Shared>(Shared{std::move(target), fresh->identity});
  credentials_ = std::move(fresh);
  return {};
}

// Servers that joined or were upgraded get their share of the connections.
bool CurlClient::renew_connections() {
  const SteadyTime now = steady_now();
  if (now < renew_at_) {
    return false;
  }
  renew_at_ = now + lifetime_();
  auto fresh = make_pool();
  if (!fresh) {
    return false;
  }
  old_pool_ = std::exchange(pool_, std::move(fresh));
  owner_.resolve = true;
  return true;
}

// The token to send, once everything else is ready.
Result<std::string> CurlClient::ready(const Request& request) {
  TRY(refresh());
  TRY(check_headers(request));
  return read_token();
}

// A token that would break out of its header is rejected, and is not quoted.
Result<std::string> CurlClient::read_token() const {
  const std::string raw = credentials_->token ? credentials_->token() : std::string{};
  std::string token{trim(raw)};
  const bool clean = std::none_of(token.begin(), token.end(), [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || static_cast<unsigned char>(c) >= 0x7f;
  });
  if (!clean) {
    return Error{Code::kInvalid,
                 "the bearer token contains a space or a control character; write its file again"};
  }
  return token;
}

Result<Response> CurlClient::call(const Request& request) {
  const auto token = TRY(ready(request));
  (void)renew_connections();
  Transfer transfer{*loop_,      owner_, shared_, request, token, pool_, Transfer::Kind::kWhole,
                    steady_now()};
  if (old_pool_) {
    curl_easy_setopt(transfer.easy(), CURLOPT_CONNECTTIMEOUT_MS, kTrialMilliseconds);
  }
  loop_->add(transfer);
  drive(transfer);
  note_outcome(transfer);
  if (transfer.error()) {
    return *transfer.error();
  }
  return Response{transfer.status(), transfer.take(), transfer.head().date(),
                  transfer.retry_after(), transfer.is_cut()};
}

void CurlClient::note_outcome(const Transfer& transfer) {
  const bool failed = transfer.error() || is_server_fault(transfer.status());
  const bool is_trial = old_pool_ != nullptr;
  const bool timed_out = !is_trial && transfer.error() && transfer.error()->code == Code::kTimeout;
  if (is_trial && failed) {
    pool_ = std::move(old_pool_);  // the next call, a renewal of the Lease, may work
  }
  old_pool_.reset();
  failures_ = failed ? failures_ + 1 : 0;
  if (failures_ > 1 || timed_out) {
    close_idle_connections();  // behind the load balancer another server may be well
  }
}

void CurlClient::drive(Transfer& transfer) {
  std::vector<int> abort_fds;
  if (abort_fd_ >= 0) {
    abort_fds.push_back(abort_fd_);
  }
  bool aborted = false;
  while (!interrupted_) {
    loop_->advance();
    if (transfer.ended()) {
      return;
    }
    if (aborted) {
      break;
    }
    aborted = !loop_->poll(kNever, abort_fds).empty();
  }
  transfer.cancel();
}

std::unique_ptr<Stream> CurlClient::open_stream(const Request& request) {
  auto token = ready(request);
  if (interrupted_) {
    token = Error{Code::kCancelled, request.method + " " + request.path + ": cancelled"};
  }
  if (renew_connections()) {
    old_pool_.reset();
  }
  auto stream = std::make_unique<Transfer>(*loop_, owner_, shared_, request, token ? *token : "",
                                           pool_, Transfer::Kind::kStreamed, steady_now());
  if (!token) {
    stream->fail(token.error());
  }
  loop_->add(*stream);
  return stream;
}

std::vector<int> CurlClient::wait(SteadyTime until, const std::vector<int>& fds) {
  (void)refresh();  // the next call reports what is wrong with new credentials
  while (!interrupted_) {
    loop_->advance();
    if (loop_->take_arrivals() || steady_now() >= until) {
      return TransferLoop::readable(fds);  // reported even now, so that none starves
    }
    if (auto ready = loop_->poll(until, fds); !ready.empty()) {
      return ready;
    }
  }
  return {};
}

Result<std::unique_ptr<Client>> make_client(CredentialSource source,
                                            std::shared_ptr<TransferLoop> loop,
                                            ConnectionLife life) {
  auto client = std::make_unique<CurlClient>(std::move(source), std::move(loop), std::move(life));
  if (!client->usable()) {
    return Error{Code::kInternal, "libcurl does not start: out of memory"};
  }
  TRY(client->refresh());
  return std::unique_ptr<Client>{std::move(client)};
}

}  // namespace

ConnectionLife usual_connection_life() {
  return [random = system_random()] { return delay(Delay::kConnectionLife, random); };
}

Result<std::unique_ptr<Client>> make_curl_client(CredentialSource source, ConnectionLife life) {
  TRY(init_curl());
  return make_client(std::move(source), std::make_shared<TransferLoop>(), std::move(life));
}

Result<std::unique_ptr<Client>> make_sibling(Client& first, CredentialSource source) {
  auto* curl = dynamic_cast<CurlClient*>(&first);
  if (curl == nullptr) {
    return Error{Code::kInternal, "a sibling of an HTTP client that is not libcurl's"};
  }
  return make_client(std::move(source), curl->loop(), usual_connection_life());
}

Result<std::unique_ptr<Client>> make_curl_client(
    const Endpoint& endpoint, std::shared_ptr<const tls::ClientIdentity> identity,
    TokenSource token) {
  auto credentials = std::make_shared<const Credentials>(
      Credentials{endpoint, std::move(identity), std::move(token)});
  return make_curl_client([credentials] { return credentials; });
}

}  // namespace slurmlet::http
