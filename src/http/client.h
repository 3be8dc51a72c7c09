#pragma once

// HTTP to one server (the API server, slurmrestd) over libcurl's multi interface, behind a seam
// without any curl type in it. One Client belongs to one thread and owns that thread's waiting:
// while it waits for an answer or in wait(), open streams go on filling and the caller's
// descriptors are watched, so one thread can hold watches, local events and calls with a single
// poll(2). Siblings (curl_client.h) talk to further servers within the same wait.
//
// Any HTTP status is a successful transport result; kube/ turns 4xx and 5xx into Errors. Transport
// failures are kUnavailable, kTimeout (our deadline), kDenied (TLS: one side does not accept the
// other's certificate; a unix socket that we may not connect to), kNotFound (a
// unix socket that is not there), kInvalid (a body over Request::max_body, a malformed URL, token
// or header), kCancelled (interrupted) or kInternal (libcurl cannot be set up).

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace slurmlet::http {

struct Request {
  std::string method = "GET";
  std::string path;                             // with query, e.g. "/api/v1/nodes/n1?…"
  std::string body = {};                        // empty = none
  std::string content_type = {};                // of the body
  Duration timeout = std::chrono::seconds{10};  // whole call; streams: until the response headers
  // More headers, {"X-SLURM-USER-TOKEN", "…"}; one that would break out of its line is rejected.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string accept = "application/json";
  std::size_t max_body = std::size_t{4} << 20;  // of the answer to a call()
  bool may_be_cut = false;  // a longer one is no error, but a Response that is cut
  // A stream's body is news once so much of it is untaken (1 MiB at most), and when it ends.
  std::size_t notify_at = 0;
  // A line of it that begins like this and arrives whole and alone is no news; "" = each is.
  std::string quiet_line = {};
};

struct Response {
  int status = 0;
  std::string body;
  std::optional<WallTime> server_date;  // Date header, for clock skew
  std::optional<Duration> retry_after;  // Retry-After in seconds
  bool is_cut = false;                  // there is more of the body than Request::max_body
};

// A response whose body arrives over time (a watch). Ends by itself or by destruction.
class Stream {
 public:
  virtual ~Stream() = default;
  // HTTP status once the headers are there, else 0.
  virtual int status() const = 0;
  // Its Retry-After, as Response's.
  virtual std::optional<Duration> retry_after() const = 0;
  // What arrived since the last call; the body of an error response too. Above 1 MiB untaken the
  // server is made to wait.
  virtual std::string take() = 0;
  // Whether the response is over; `error` then says why if it was not the server's orderly end.
  virtual bool ended() const = 0;
  virtual std::optional<Error> error() const = 0;
};

class Client {
 public:
  virtual ~Client() = default;

  // Sends and waits, at most request.timeout. Returns kCancelled when interrupt() was called.
  virtual Result<Response> call(const Request& request) = 0;

  // Starts a streamed response; returns at once. One that cannot start has ended with an error. The
  // stream must not outlive the client.
  virtual std::unique_ptr<Stream> open_stream(const Request& request) = 0;

  // Waits until a descriptor of `fds` is readable, a stream of this client has news, interrupt()
  // was called, or `until` has come. Returns the readable descriptors (hung-up ones too). News are
  // arrivals (of the status, of body data, of the end), reported once each: unread data never keeps
  // a loop awake, so a reader must first drain its stream. News that came during a call() count for
  // the next wait().
  virtual std::vector<int> wait(SteadyTime until, const std::vector<int>& fds) = 0;

  // Makes the call or wait under way, and all later ones, return at once. Thread-safe.
  virtual void interrupt() = 0;

  // Descriptor that also aborts calls under way when it becomes readable (a signalfd), or -1.
  virtual void set_abort_fd(int fd) = 0;

  // Closes idle connections so that the next call opens a fresh one (after failures).
  virtual void close_idle_connections() = 0;

  // The local address of the last connection ("192.0.2.7"), "" before the first.
  virtual std::string local_address() const = 0;
};

}  // namespace slurmlet::http
