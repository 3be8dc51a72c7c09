#include "http/transfer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "http/proxy_choice.h"
#include "http/transfer_loop.h"
#include "http/transport_error.h"

namespace slurmlet::http {
namespace {

// The options of a transfer, grouped by what they are for. Each group returns false when libcurl
// refuses one (an option it was built without, or no memory), which ends the transfer: a security
// option that did not take effect must never pass unnoticed.

// A dead peer is noticed within 20 s: while idle by probes (8 s, then three at 4 s), while data is
// unacknowledged by the user timeout (tcp(7)).
constexpr int kKeepIdleSeconds = 8;
constexpr int kKeepIntervalSeconds = 4;
constexpr int kKeepCount = 3;
constexpr int kUserTimeoutMilliseconds = 18000;

constexpr long kBufferBytes = 16384;
// Idle connections are kept however rarely they are used; libcurl checks them before reuse.
constexpr long kMaxIdleSeconds = 24L * 60 * 60;

template <typename T>
bool set(CURL* easy, CURLoption option, T value) {
  return curl_easy_setopt(easy, option, value) == CURLE_OK;
}

int on_socket(void* /*data*/, curl_socket_t fd, curlsocktype /*purpose*/) {
  // libcurl opens it without; no child may have it.
  (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
  const auto set_socket = [fd](int level, int name, int value) {
    // Best effort: without them only the detection of dead peers is slower.
    (void)::setsockopt(fd, level, name, &value, sizeof value);
  };
  set_socket(SOL_SOCKET, SO_KEEPALIVE, 1);
  set_socket(IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdleSeconds);
  set_socket(IPPROTO_TCP, TCP_KEEPINTVL, kKeepIntervalSeconds);
  set_socket(IPPROTO_TCP, TCP_KEEPCNT, kKeepCount);
  set_socket(IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMilliseconds);
  return CURL_SOCKOPT_OK;
}

CURLcode on_ssl_context(CURL* /*easy*/, void* ssl_ctx, void* identity) {
  return static_cast<const tls::ClientIdentity*>(identity)->apply_to(ssl_ctx)
             ? CURLE_OK
             : CURLE_SSL_CERTPROBLEM;
}

// Appends a header line; false when memory is short.
bool append_header(HeaderList& headers, const char* line) {
  curl_slist* longer = curl_slist_append(headers.get(), line);
  if (longer == nullptr) {
    return false;
  }
  (void)headers.release();  // `longer` starts with it
  headers.reset(longer);
  return true;
}

// libcurl sends a header without a value only when it is written with a semicolon.
std::string header_line(const std::string& name, const std::string& value) {
  return value.empty() ? name + ";" : name + ": " + value;
}

bool set_protocols(CURL* easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
  return set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  return set(easy, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

// No redirects, netrc, environment proxies or protocols but http and https.
bool set_policy(CURL* easy, const Target& target) {
  // "" turns the environment's http_proxy and no_proxy off. Through a proxy even http is tunnelled,
  // and our headers (the token) go to the server only.
  return set_protocols(easy) && set(easy, CURLOPT_FOLLOWLOCATION, 0L) &&
         set(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED)) &&
         set(easy, CURLOPT_PROXY, target.proxy.c_str()) && set(easy, CURLOPT_NOPROXY, "") &&
         set(easy, CURLOPT_HTTPPROXYTUNNEL, target.proxy.empty() ? 0L : 1L) &&
         set(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE)) &&
         set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) && set(easy, CURLOPT_PATH_AS_IS, 1L);
}

// Trust and client certificate from `identity`; peer and name verified unless it is one that says
// otherwise (verifies_server()); TLS 1.2 or newer.
bool set_tls(CURL* easy, const tls::ClientIdentity* identity) {
  const bool verify = identity->verifies_server();
  bool good = set(easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L) &&
              set(easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L) &&
              set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2)) &&
              set(easy, CURLOPT_SSL_SESSIONID_CACHE, 0L) &&
              set(easy, CURLOPT_SSL_CTX_FUNCTION, on_ssl_context) &&
              set(easy, CURLOPT_SSL_CTX_DATA, const_cast<tls::ClientIdentity*>(identity));
  // The identity brings the trust store; parsing the system's bundle would cost memory for nothing.
  const char* none = nullptr;
  good = good && set(easy, CURLOPT_CAINFO, none) && set(easy, CURLOPT_CAPATH, none) &&
         set(easy, CURLOPT_PROXY_CAINFO, none) && set(easy, CURLOPT_PROXY_CAPATH, none) &&
         set(easy, CURLOPT_PROXY_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
#if LIBCURL_VERSION_NUM >= 0x075700
  good = good && set(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
  return good;
}

// Keep-alive, dead-peer detection, small buffers.
bool set_connection(CURL* easy) {
  bool good = set(easy, CURLOPT_NOSIGNAL, 1L) && set(easy, CURLOPT_TCP_NODELAY, 1L) &&
              set(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1)) &&
              set(easy, CURLOPT_BUFFERSIZE, kBufferBytes) &&
              set(easy, CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes) &&
              set(easy, CURLOPT_MAXAGE_CONN, kMaxIdleSeconds) &&
              set(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
#if LIBCURL_VERSION_NUM >= 0x075700
  // Giving up must not wait for a resolver thread that is stuck on a dead DNS server.
  good = good && set(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
  return good;
}

// Method, URL and body; `request` must outlive the transfer.
bool set_request(CURL* easy, const Target& target, const Request& request) {
  if (!set(easy, CURLOPT_URL, (target.base + request.path).c_str())) {
    return false;
  }
  if (request.method == "HEAD") {
    return set(easy, CURLOPT_NOBODY, 1L);
  }
  const bool must_have_body =
      request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
  if ((must_have_body || !request.body.empty()) &&
      !(set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size())) &&
        set(easy, CURLOPT_POSTFIELDS, request.body.data()))) {
    return false;
  }
  return set(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

// The request's headers, to be set with CURLOPT_HTTPHEADER; null when memory is short.
HeaderList make_headers(const Target& target, const Request& request, const std::string& token) {
  HeaderList headers;
  const auto add = [&headers](const std::string& line) {
    return append_header(headers, line.c_str());
  };
  // "Expect:" without a value: libcurl would wait a second for "100 Continue" before long bodies.
  bool good = add("Accept: " + request.accept) && add("Expect:") &&
              add(request.content_type.empty() ? "Content-Type:"
                                               : "Content-Type: " + request.content_type) &&
              (target.user_agent.empty() || add("User-Agent: " + target.user_agent)) &&
              (target.host_header.empty() || add(target.host_header));
  good = good && (token.empty() || add("Authorization: Bearer " + token));
  for (const auto& [name, value] : request.headers) {
    good = good && add(header_line(name, value));
  }
  return good ? std::move(headers) : HeaderList{};
}

long milliseconds(Duration duration) {
  const auto count = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<long>(std::clamp<std::int64_t>(count, 1, 24L * 60 * 60 * 1000));
}

// "GET https://host:6443/api", "GET https://host:6443/api through the proxy cache:3128",
// "GET unix:/run/s.sock:/api"
std::string what_is_asked(const Target& target, const Request& request) {
  const char* border = target.unix_socket.empty() ? "" : ":";
  return request.method + " " + target.shown + border + request.path +
         (target.proxy.empty() ? "" : " through the proxy " + proxy_shown(target.proxy));
}

}  // namespace

Transfer::Transfer(TransferLoop& loop, Owner& owner, std::shared_ptr<const Shared> shared,
                   const Request& request, const std::string& token, ConnectionPool pool, Kind kind,
                   SteadyTime now)
    : loop_(loop),
      owner_(owner),
      shared_(std::move(shared)),
      request_(request),
      kind_(kind),
      deadline_(now + request.timeout),
      lists_{make_headers(shared_->target, request, token), nullptr, nullptr},
      pool_(std::move(pool)),
      easy_(curl_easy_init()) {
  const bool has_all = easy_ && pool_ && lists_.headers;
  if (!has_all || !set_options() || !set_route()) {
    fail({Code::kInternal, what() + ": libcurl rejects an option or is out of memory"});
  }
}

std::string Transfer::what() const { return what_is_asked(shared_->target, request_); }

bool Transfer::set_options() {
  const auto set_own = [this](CURLoption option, auto value) { return set(easy(), option, value); };
  return set_policy(easy(), shared_->target) && set_connection(easy()) &&
         set_request(easy(), shared_->target, request_) &&
         set_own(CURLOPT_HTTPHEADER, lists_.headers.get()) && set_own(CURLOPT_SHARE, pool_.get()) &&
         set_own(CURLOPT_PRIVATE, static_cast<void*>(this)) &&
         set_own(CURLOPT_ERRORBUFFER, detail_.data()) &&
         set_own(CURLOPT_HEADERFUNCTION, &Transfer::on_header) &&
         set_own(CURLOPT_HEADERDATA, this) && set_own(CURLOPT_WRITEFUNCTION, &Transfer::on_body) &&
         set_own(CURLOPT_WRITEDATA, this) &&
         // Our deadline holds in any case. libcurl gets it, too, so that it shares the time out
         // among the addresses of a host whose first address is dead.
         set_own(kind_ == Kind::kWhole ? CURLOPT_TIMEOUT_MS : CURLOPT_CONNECTTIMEOUT_MS,
                 milliseconds(request_.timeout));
}

// Where the connection leads, and which certificates it trusts.
bool Transfer::set_route() {
  const Target& target = shared_->target;
  if (target.tls && !set_tls(easy(), shared_->identity.get())) {
    return false;
  }
  if (!target.connect_to.empty() && !(append_header(lists_.connect_to, target.connect_to.c_str()) &&
                                      set(easy(), CURLOPT_CONNECT_TO, lists_.connect_to.get()))) {
    return false;
  }
  return choose_address() && (target.unix_socket.empty() ||
                              set(easy(), CURLOPT_UNIX_SOCKET_PATH, target.unix_socket.c_str()));
}

// libcurl alone forgets an address after a minute, and would wait for a resolver that is silent.
bool Transfer::choose_address() {
  const Target& target = shared_->target;
  if (target.name.empty() || owner_.peer.empty()) {
    return true;
  }
  resolves_ = owner_.resolve;
  const std::string entry =
      resolves_ ? fmt::format("-{}:{}", target.name, target.port)  // what libcurl knew of it
                : fmt::format("{}:{}:{}", target.name, target.port, owner_.peer);
  return append_header(lists_.resolve, entry.c_str()) &&
         set(easy(), CURLOPT_RESOLVE, lists_.resolve.get());
}

Transfer::~Transfer() { loop_.remove(*this); }

std::string Transfer::take() {
  std::string taken = std::exchange(body_.text, {});
  body_.has_arrived = false;
  if (std::exchange(body_.paused, false) && !ended()) {
    // May call on_body() at once.
    if (const CURLcode code = curl_easy_pause(easy(), CURLPAUSE_CONT); code != CURLE_OK) {
      finish(code);
    }
  }
  return taken;
}

SteadyTime Transfer::deadline() const {
  return ended() || (kind_ == Kind::kStreamed && head_.complete()) ? kNever : deadline_;
}

std::size_t Transfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const bool was_complete = transfer.head_.complete();
  transfer.head_.add_line({data, size * count});
  if (!was_complete && transfer.head_.complete()) {
    transfer.event_ = true;
    transfer.note_connection();
  }
  return size * count;
}

void Transfer::note_connection() {
  const auto text = [this](CURLINFO info) {
    char* value = nullptr;
    return std::string{
        curl_easy_getinfo(easy(), info, &value) == CURLE_OK && value != nullptr ? value : ""};
  };
  if (std::string address = text(CURLINFO_LOCAL_IP); !address.empty()) {
    owner_.local_address = std::move(address);
  }
  const std::string peer = text(CURLINFO_PRIMARY_IP);
  long connections = 0;
  curl_easy_getinfo(easy(), CURLINFO_NUM_CONNECTS, &connections);
  if (!peer.empty() && connections > 0) {
    owner_.peer = peer.find(':') == std::string::npos ? peer : "[" + peer + "]";
    owner_.resolve = false;
  }
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::size_t length = size * count;
  Body& body = transfer.body_;
  if (transfer.kind_ == Kind::kStreamed && body.text.size() >= kMaxUntakenBody) {
    body.paused = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  if (transfer.kind_ == Kind::kWhole && body.text.size() + length > transfer.request_.max_body) {
    body.too_long = true;
    return 0;
  }
  body.text.append(data, length);
  body.has_arrived |= transfer.has_arrived({data, length});
  return length;
}

// `piece` is the end of the body.
bool Transfer::has_arrived(std::string_view piece) {
  const std::string& quiet_line = request_.quiet_line;
  const bool quiet = !quiet_line.empty() && !body_.within_line && piece.starts_with(quiet_line) &&
                     piece.find('\n') == piece.size() - 1;
  body_.within_line = !piece.ends_with('\n');
  return body_.text.size() >=
         std::min(quiet ? kMaxUntakenBody : request_.notify_at, kMaxUntakenBody);
}

void Transfer::finish(CURLcode code) {
  if (code == CURLE_OK || (body_.too_long && request_.may_be_cut)) {
    outcome_.emplace();
    event_ = true;
    return;
  }
  if (body_.too_long) {
    fail({Code::kInvalid, fmt::format("{}: the answer is longer than {} bytes; request less",
                                      what(), request_.max_body)});
    return;
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    expire();
    return;
  }
  std::string detail = detail_.data();
  const std::string& proxy = shared_->target.proxy;
  if (const auto at = detail.find(proxy); !proxy.empty() && at != std::string::npos) {
    // libcurl quotes the URL of a proxy that it cannot use, with the password in it.
    detail.replace(at, proxy.size(), proxy_shown(proxy));
  }
  TransportFailure failure{code, 0, std::move(detail), !shared_->target.unix_socket.empty()};
  curl_easy_getinfo(easy(), CURLINFO_OS_ERRNO, &failure.os_error);
  fail(transport_error(what(), failure));
}

void Transfer::expire() {
  const std::string reason = fmt::format("no answer within {} ms", milliseconds(request_.timeout));
  fail({Code::kTimeout,
        what() + ": " + reason,
        {},
        RequestFailure{.stage = RequestFailure::Stage::kConnection, .reason = reason}});
}

void Transfer::cancel() { fail({Code::kCancelled, what() + ": cancelled"}); }

std::optional<Error> Transfer::error() const {
  return outcome_ && !*outcome_ ? std::optional{outcome_->error()} : std::nullopt;
}

void Transfer::fail(Error error) {
  const bool cancelled = error.code == Code::kCancelled;
  outcome_ = std::move(error);
  event_ = true;
  // Without a connection: the name may lead elsewhere by now, or the resolver is silent. Each is
  // tried in turn.
  curl_off_t connected = 0;
  if (easy_) {
    curl_easy_getinfo(easy(), CURLINFO_PRETRANSFER_TIME_T, &connected);
  }
  if (connected == 0 && !cancelled) {
    owner_.resolve = !resolves_;
  }
}

}  // namespace slurmlet::http
