#pragma once

// An HTTP/1.1 server for many strangers and few friends: one epoll(7) set, no thread, everything a
// client controls bounded. TLS by tls::ServerSession, or plain.
//
// A step object: fd() is readable whenever step() has something to do; step() never blocks and does
// a bounded amount of work in one call. A request whose head is complete goes to the
// RequestHandler; its answer may come later. Not thread-safe.
//
// A handshake begins when the client has said something and is within the limits of handshakes;
// those over them wait for their turn without costing anything, in the order of their coming,
// within head_timeout.
//
// What strangers can make it hold, whatever they send: max_connections times the head
// (HeadLimits, thrice), 4 KiB of what came after it and a TLS session (some 50 KiB); besides the
// answers that the handler gave and the clients have not taken yet. Nothing is read from a
// connection while its request is being answered. When all connections are taken, the one that has
// been idle longest makes room; for a known address, one from which a request was let through, also
// the oldest connection that never was. If there is none, the new one is closed. Of an
// address that has its share its own oldest goes.
//
// A client that ends its side of the connection (FIN) before its request was answered gets what is
// answered at once; a request that waits is forgotten, as the client has probably gone.

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

// Who sent a request, as far as the connection tells.
struct Caller {
  std::string host;     // "192.0.2.7", also where IPv6 carries it; "2001:db8::1"
  std::string address;  // "192.0.2.7:40412"
  std::optional<tls::CertificateSummary> certificate;  // believed client certificate
};

using RequestId = std::uint64_t;

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // A request has come; the answer now, or nothing if it will come from take_answers().
  virtual std::optional<Response> begin(RequestId id, const Caller& caller, const RequestHead& head,
                                        Now now) = 0;
  // Answers that became ready. `next` is lowered to when to ask again at the latest.
  // One to a request that was forgotten is dropped.
  virtual std::vector<std::pair<RequestId, Response>> take_answers(Now /*now*/,
                                                                   SteadyTime& /*next*/) {
    return {};
  }
  // Its client went away, or it has waited for answer_timeout: no answer is wanted any more.
  virtual void forget(RequestId /*id*/) {}
};

// Answers each request at once, in the Server's step(): it must be quick.
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
  std::string address = "::";  // "::" takes IPv4 too; without IPv6 "0.0.0.0" is used instead
  int port = 0;                // 0: any free one (tests); port() tells
  std::string port_flag;       // "--port", for the error when it is taken
  // Listening sockets of the service manager: one that has this port and address is used (a
  // duplicate of it) and none is bound.
  std::vector<int> inherited;
  Random random;  // for pauses; system_random() if not set
  // TLS if set: asked for each handshake, so that a renewed certificate is used at once.
  // nullptr = refuse connections for now.
  std::function<std::shared_ptr<const tls::ServerIdentity>()> identity;

  std::size_t max_connections = 64;
  std::size_t max_per_address = 32;  // of them from one address
  // Handshake and head together, from accept; of a later request, from its first byte.
  Duration head_timeout = std::chrono::seconds{10};
  // Until the handler has answered (503 then), and again until the client has taken the answer.
  Duration answer_timeout = std::chrono::seconds{30};
  Duration idle_timeout = std::chrono::seconds{90};  // between two requests, as the kubelet's
  Duration max_age = std::chrono::hours{1};          // then it ends with the present answer
  std::size_t max_requests = 1000;                   // of a connection
  HeadLimits head;
  // Of known addresses, and of all others; one takes half a millisecond and more.
  Rate handshakes{8, 32};
};

struct ServerCounters {
  std::uint64_t accepted = 0;
  std::uint64_t turned_away = 0;  // over a limit with nobody to make room, or no identity
  std::uint64_t evicted = 0;      // closed to make room for another
  std::uint64_t handshakes_failed = 0;
  std::uint64_t handshakes_delayed = 0;  // over the limits; they had to wait
  std::uint64_t bind_failures = 0;       // attempts to listen
  bool listening = false;
  std::uint64_t timed_out = 0;
  std::uint64_t refused_heads = 0;       // malformed or over a limit
  std::map<int, std::uint64_t> answers;  // by HTTP status
  std::size_t open = 0;
};

// Of a socket that the service manager handed over: "[::]:10250"; and whether it is the one that a
// server with these options listens on.
std::string socket_name(int socket);
bool is_for(int socket, const ServerOptions& options);

class Server {
 public:
  // The handler must outlive it.
  Server(ServerOptions options, RequestHandler& handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // kConflict when the port is taken, kInvalid for what is no address or port; names the flag.
  // After an Error other than kInvalid step() tries again, as when the port is lost later.
  Status start();
  int port() const;  // that of the options while it does not listen
  int fd() const;
  SteadyTime step(Now now);
  ServerCounters counters() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace slurmlet::podapi
