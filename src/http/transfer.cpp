#include "http/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "http/known_addresses.h"
#include "http/proxy_choice.h"
#include "http/transfer_options.h"
#include "http/transport_error.h"

namespace slurmlet::http {
namespace {

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

Transfer::Transfer(Owner& owner, std::shared_ptr<const Shared> shared, const Request& request,
                   const std::string& token, ConnectionPool pool, Kind kind, SteadyTime now)
    : owner_(owner),
      shared_(std::move(shared)),
      kind_(kind),
      what_(what_is_asked(shared_->target, request)),
      request_body_(request.body),
      timeout_(request.timeout),
      max_body_(request.max_body),
      news_at_(std::min(request.news_at, kMaxUntakenBody)),
      quiet_line_(request.quiet_line),
      may_be_cut_(request.may_be_cut),
      deadline_(now + request.timeout),
      pool_(std::move(pool)),
      easy_(curl_easy_init()) {
  headers_ = make_headers(shared_->target, request, token);
  const auto set = [this](CURLoption option, auto value) {
    return curl_easy_setopt(easy(), option, value) == CURLE_OK;
  };
  bool good =
      easy_ && pool_ && headers_ && set_policy(easy(), shared_->target) && set_connection(easy()) &&
      set_request(easy(), shared_->target, request, request_body_) &&
      set(CURLOPT_HTTPHEADER, headers_.get()) && set(CURLOPT_SHARE, pool_.get()) &&
      set(CURLOPT_PRIVATE, static_cast<void*>(this)) && set(CURLOPT_ERRORBUFFER, detail_.data()) &&
      set(CURLOPT_HEADERFUNCTION, &Transfer::on_header) && set(CURLOPT_HEADERDATA, this) &&
      set(CURLOPT_WRITEFUNCTION, &Transfer::on_body) && set(CURLOPT_WRITEDATA, this) &&
      // Our deadline holds in any case. libcurl is told so that it shares the time out
      // among the addresses of a host whose first address is dead.
      set(kind == Kind::kWhole ? CURLOPT_TIMEOUT_MS : CURLOPT_CONNECTTIMEOUT_MS,
          milliseconds(timeout_));
  if (good && shared_->target.tls) {
    good = set_tls(easy(), shared_->identity.get());
  }
  if (good && !shared_->target.connect_to.empty()) {
    good = append_header(connect_to_, shared_->target.connect_to.c_str()) &&
           set(CURLOPT_CONNECT_TO, connect_to_.get());
  }
  if (const std::string known = known_addresses().of(shared_->target.name);
      good && !known.empty()) {
    const std::string entry =
        fmt::format("{}:{}:{}", shared_->target.name, shared_->target.port, known);
    good = append_header(resolve_, entry.c_str()) && set(CURLOPT_RESOLVE, resolve_.get());
  }
  if (good && !shared_->target.unix_socket.empty()) {
    good = set(CURLOPT_UNIX_SOCKET_PATH, shared_->target.unix_socket.c_str());
  }
  if (!good) {
    fail({Code::kInternal, what_ + ": libcurl rejects an option or is out of memory"});
  }
}

std::string Transfer::take_body() {
  std::string taken = std::exchange(body_, {});
  body_news_ = false;
  if (std::exchange(paused_, false) && !ended_) {
    // May call on_body() at once.
    if (const CURLcode code = curl_easy_pause(easy(), CURLPAUSE_CONT); code != CURLE_OK) {
      finish(code);
    }
  }
  return taken;
}

SteadyTime Transfer::deadline() const {
  return ended_ || (kind_ == Kind::kStreamed && head_.complete()) ? kNever : deadline_;
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
  if (const std::string& name = shared_->target.name;
      !name.empty() && !peer.empty() && connections > 0) {
    known_addresses().worked(name, peer);
    known_addresses().look_up(name, std::chrono::steady_clock::now());
  }
}

std::size_t Transfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::size_t length = size * count;
  if (transfer.kind_ == Kind::kStreamed && transfer.body_.size() >= kMaxUntakenBody) {
    transfer.paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  if (transfer.kind_ == Kind::kWhole && transfer.body_.size() + length > transfer.max_body_) {
    transfer.too_long_ = true;
    return 0;
  }
  transfer.body_.append(data, length);
  transfer.body_news_ |= transfer.is_news({data, length});
  return length;
}

// `piece` is the end of the body.
bool Transfer::is_news(std::string_view piece) {
  const bool quiet = !quiet_line_.empty() && !within_line_ && piece.starts_with(quiet_line_) &&
                     piece.find('\n') == piece.size() - 1;
  within_line_ = !piece.ends_with('\n');
  return body_.size() >= (quiet ? kMaxUntakenBody : news_at_);
}

void Transfer::finish(CURLcode code) {
  if (code == CURLE_OK || (too_long_ && may_be_cut_)) {
    ended_ = true;
    event_ = true;
    return;
  }
  if (too_long_) {
    fail({Code::kInvalid,
          fmt::format("{}: the answer is longer than {} bytes; request less", what_, max_body_)});
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
  fail(transport_error(what_, failure));
}

void Transfer::expire() {
  fail({Code::kTimeout, fmt::format("{}: no answer within {} ms", what_, milliseconds(timeout_))});
}

void Transfer::cancel() { fail({Code::kCancelled, what_ + ": cancelled"}); }

void Transfer::fail(Error error) {
  ended_ = true;
  event_ = true;
  error_ = std::move(error);
  // The name may lead elsewhere by now.
  if (!shared_->target.name.empty() && error_->code != Code::kCancelled) {
    known_addresses().look_up(shared_->target.name, std::chrono::steady_clock::now());
  }
}

}  // namespace slurmlet::http
