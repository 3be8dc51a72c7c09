#pragma once

// One request and its response under way: a libcurl easy handle, what it has received and how it
// ended. A TransferLoop moves it on, once it is added there and until it is destroyed; whoever made
// it looks at the outcome. Internal to the component.
//
// Pinned in memory (libcurl holds pointers into it) and owned by one thread.

#include <curl/curl.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/client.h"
#include "http/curl_handle.h"
#include "http/response_head.h"
#include "http/target.h"
#include "tls/client_identity.h"

namespace slurmlet::http {

// Of a streamed body, no more than this and one network buffer is held until it is taken.
inline constexpr std::size_t kMaxUntakenBody = std::size_t{1} << 20;

// What the requests of one client have in common while its credentials stay the same. A transfer
// holds it: libcurl uses the identity until the transfer's connection is made.
struct Shared {
  Target target;
  std::shared_ptr<const tls::ClientIdentity> identity;
};

// The client of a transfer; distinguishes those of siblings. Outlives them.
struct Owner {
  std::string local_address;  // our side of its last connection; "" before the first
  // Where its name led when a connection was made, so that no resolver is needed for the next one,
  // and whether that has failed or may have changed since: the next one resolves the name again.
  std::string peer;
  bool resolve = false;
};

class TransferLoop;

class Transfer final : public Stream {
 public:
  enum class Kind { kWhole, kStreamed };

  // `request.timeout` counts from `now`, for kStreamed until the headers are there. A transfer that
  // cannot even be set up has ended from the start.
  Transfer(TransferLoop& loop, Owner& owner, std::shared_ptr<const Shared> shared,
           const Request& request, const std::string& token, ConnectionPool pool, Kind kind,
           SteadyTime now);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() override;

  CURL* easy() const { return easy_.get(); }
  const Owner& owner() const { return owner_; }
  Kind kind() const { return kind_; }
  const ResponseHead& head() const { return head_; }
  int status() const override { return head_.status(); }
  std::optional<Duration> retry_after() const override { return head_.retry_after(); }
  bool ended() const override { return outcome_.has_value(); }
  std::optional<Error> error() const override;
  bool is_cut() const { return body_.too_long; }  // and ended because of it
  // The body so far; empties it and lets a paused transfer go on.
  std::string take() override;
  // When it is to be given up; kNever once nothing more is timed.
  SteadyTime deadline() const;
  // Streams: whether something has come since note_reported() that the reader has not seen: a piece
  // of the body (until it is taken), the status or the end.
  bool has_arrivals() const { return kind_ == Kind::kStreamed && (event_ || body_.has_arrived); }
  void note_reported() { event_ = body_.has_arrived = false; }

  // How it came to an end: by libcurl, by its deadline or by its owner.
  void finish(CURLcode code);
  void expire();
  void cancel();
  void fail(Error error);

 private:
  struct Body {  // of the answer
    std::string text;
    bool within_line = false;  // the last piece did not end with its line
    bool has_arrived = false;
    bool too_long = false;
    bool paused = false;
  };
  // That libcurl keeps pointers to.
  struct Lists {
    HeaderList headers, connect_to, resolve;
  };
  std::string what() const;  // "GET https://…", for errors
  bool set_options();
  bool set_route();
  bool choose_address();
  void note_connection();
  bool has_arrived(std::string_view piece);
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);

  TransferLoop& loop_;
  Owner& owner_;
  std::shared_ptr<const Shared> shared_;
  const Request request_;
  Kind kind_;
  SteadyTime deadline_;
  ResponseHead head_;
  Body body_;
  bool event_ = false;
  std::optional<Status> outcome_;  // nothing: it has not ended
  std::array<char, CURL_ERROR_SIZE> detail_{};
  Lists lists_;
  bool resolves_ = true;  // the name, unless a kept connection is used
  // Order matters: the easy handle goes before what it points to, the pool last.
  ConnectionPool pool_;
  EasyHandle easy_;
};

}  // namespace slurmlet::http
