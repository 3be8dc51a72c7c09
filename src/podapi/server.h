#pragma once

// An HTTP/1.1 server for few known and many unauthenticated clients: one epoll(7) set, no thread,
// and bounds on everything that a client controls. TLS by tls::ServerSession, or plain.
//
// A step object: fd() is readable when step() has something to do; step() never blocks, and its
// work per call is bounded. A complete head goes to the RequestHandler, which may answer later. Not
// thread-safe.
//
// A handshake starts when the client has sent something and the limit of handshakes permits; until
// then it waits without cost, in order of arrival, up to head_timeout.
//
// Memory is bounded by max_connections times three heads (HeadLimits), 4 KiB of read-ahead and a
// TLS session (some 50 KiB), plus answers not received yet. Nothing is read from a connection while
// its request is being answered. When all connections are in use, the one idle longest is evicted;
// for a known address also the oldest without an authorized request. If there is none, the new one
// is closed. An address at its own limit loses its own oldest.
//
// A client that closes its side (FIN) gets an immediate answer; a waiting request is dropped, since
// the client is probably gone.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/delay.h"
#include "base/result.h"
#include "base/token_bucket.h"
#include "base/unique_fd.h"
#include "podapi/request_head.h"
#include "podapi/routes.h"
#include "tls/server_session.h"

namespace slurmlet::podapi {

// The sender of a request, from its connection.
struct Caller {
  std::string host;     // "192.0.2.7", also if IPv4-mapped; "2001:db8::1"
  std::string address;  // "192.0.2.7:40412"
  std::optional<tls::CertificateSummary> certificate;  // verified client certificate
};

using RequestId = std::uint64_t;

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Returns the answer, or nothing if it will come from take_answers().
  virtual std::optional<Response> begin(RequestId id, const Caller& caller, const RequestHead& head,
                                        Now now) = 0;
  // Returns answers that are ready now, and lowers `next` to the next call's deadline. Those to
  // forgotten requests are dropped.
  virtual std::vector<std::pair<RequestId, Response>> take_answers(Now /*now*/,
                                                                   SteadyTime& /*next*/) {
    return {};
  }
  // The client is gone, or answer_timeout has passed: no answer is needed.
  virtual void forget(RequestId /*id*/) {}
};

// Answers each request at once, in the Server's step(), so `answer` must be fast.
class Pages final : public RequestHandler {
 public:
  explicit Pages(std::function<Response(const RequestHead&)> answer) : answer_(std::move(answer)) {}
  std::optional<Response> begin(RequestId /*id*/, const Caller& /*caller*/, const RequestHead& head,
                                Now /*now*/) override {
    return answer_(head);
  }

 private:
  std::function<Response(const RequestHead&)> answer_;
};

struct ServerOptions {
  std::string address = "::";  // "::" includes IPv4; without IPv6 it means "0.0.0.0"
  int port = 0;                // 0: any free one (tests); see port()
  std::string port_flag;       // "--port", for the error if it is in use
  // Listening sockets of the service manager: a duplicate of the one with this port and address is
  // used instead of binding.
  std::vector<int> inherited;
  Random random;  // for back-off; default system_random()
  // Enables TLS. Called for each handshake, so that a renewed certificate is used at once; nullptr
  // = close connections for now.
  std::function<std::shared_ptr<const tls::ServerIdentity>()> identity;

  std::size_t max_connections = 64;
  std::size_t max_per_address = 32;
  // For handshake and head together, from accept; for a later request from its first byte.
  Duration head_timeout = std::chrono::seconds{10};
  // Until the handler has answered (else 503), and again until the client has received the answer.
  Duration answer_timeout = std::chrono::seconds{30};
  Duration idle_timeout = std::chrono::seconds{90};  // between requests, as in the kubelet
  Duration max_age = std::chrono::hours{1};          // then the current answer is the last
  std::size_t max_requests = 1000;                   // per connection
  HeadLimits head;
  // For known addresses, and for all others; a handshake takes at least 0.5 ms.
  Rate handshakes{8, 32};
};

struct ServerCounters {
  std::uint64_t accepted = 0;
  std::uint64_t turned_away = 0;  // over a limit, or no identity
  std::uint64_t evicted = 0;      // closed to make room for another
  std::uint64_t handshakes_failed = 0;
  std::uint64_t handshakes_delayed = 0;
  std::uint64_t bind_failures = 0;  // failed attempts to listen
  bool listening = false;
  std::uint64_t timed_out = 0;
  std::uint64_t rejected_heads = 0;      // malformed or over a limit
  std::map<int, std::uint64_t> answers;  // by HTTP status
  std::size_t open = 0;
};

// The address of an inherited socket, "[::]:10250", and whether these options use it.
std::string socket_name(int socket);
bool is_for(int socket, const ServerOptions& options);

class Server {
 public:
  // The handler must outlive it.
  Server(ServerOptions options, RequestHandler& handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // kConflict if the port is in use, kInvalid for an invalid address or port; the error names the
  // flag. After an Error other than kInvalid, step() tries again.
  Status start();
  int port() const;  // the configured one while it does not listen
  int fd() const;
  SteadyTime step(Now now);
  ServerCounters counters() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace slurmlet::podapi
