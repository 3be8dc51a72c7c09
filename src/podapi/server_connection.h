#pragma once

// One connection of the Server: TLS handshake, heads of requests, answers, close. Never blocks, and
// uses no clock, epoll or handler. Internal to the component; not thread-safe.
//
// Memory per connection: the head being read (request_head.h), kReadBytes of read-ahead, the TLS
// session, and the answer being written. Nothing is read while a request waits for its answer, so
// the kernel's buffer stops the client.

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

class ServerConnection {
 public:
  static constexpr std::size_t kReadBytes = 4096;                     // per read
  static constexpr int kMaxReads = 64;                                // per advance()
  static constexpr std::size_t kWriteBytes = std::size_t{256} << 10;  // per advance()
  static constexpr std::size_t kLingerBytes = std::size_t{64} << 10;  // discarded before closing
  static constexpr std::chrono::seconds kLingerTime{2};

  enum class State { kNew, kHandshaking, kReading, kWaiting, kWriting, kLingering, kClosed };
  enum class Event {
    kNone,
    kRequest,          // head() is complete; answer() must follow
    kRejected,         // the head is malformed; answer() must follow, and closes the connection
    kHandshakeFailed,  // reported once
  };

  // `socket` is non-blocking. The options must outlive it. With an identity in them, nothing is
  // read before shake_hands().
  ServerConnection(UniqueFd socket, Caller caller, const ServerOptions& options, SteadyTime now);
  void shake_hands(std::unique_ptr<tls::ServerSession> session);
  // Until shake_hands(), watches only for the client's close.
  void wait_for_handshake();

  // Proceeds as far as the socket allows, at most by one request.
  Event advance(SteadyTime now);
  // Answers the request or rejection that advance() returned.
  void answer(std::string text, bool keep_open, SteadyTime now);
  void close() { state_ = State::kClosed; }

  int fd() const { return socket_.get(); }
  State state() const { return state_; }
  // The events for epoll(7).
  std::uint32_t wanted_events() const { return wanted_; }
  // When the current state times out.
  SteadyTime deadline() const { return deadline_; }

  const Caller& caller() const { return caller_; }
  const RequestHead& head() const { return reader_.head(); }
  int rejection_status() const { return reader_.rejection_status(); }
  const std::string& rejection() const { return reader_.rejection(); }
  // Whether another request may follow the current one.
  bool may_stay_open(SteadyTime now) const;
  bool is_plain() const { return !options_.identity; }
  // Between two requests, with no byte of the next one received.
  bool is_idle() const;

  // Set by the server: the waiting request; whether one was ever authorized.
  RequestId request = 0;
  bool let_through = false;

 private:
  using Io = tls::ServerSession::Io;
  Event handshake();
  Event read_head(SteadyTime now);
  void write(SteadyTime now);
  void begin_next_request(SteadyTime now);
  std::uint32_t events_for_reading() const;
  void begin_linger(SteadyTime now);
  void linger();
  Io receive(char* into, std::size_t size);
  Io send(std::string_view bytes);
  // If the session must wait, sets the event to watch for and returns true.
  bool waits(tls::ServerSession::State state);
  // Returns whether bytes were transferred; otherwise waits or closes.
  bool went(const Io& io);

  UniqueFd socket_;
  std::unique_ptr<tls::ServerSession> session_;
  const ServerOptions& options_;
  Caller caller_;
  State state_;
  std::uint32_t wanted_ = 0;
  SteadyTime born_;
  SteadyTime deadline_;
  HeadReader reader_;
  std::string unread_;  // received beyond the current head
  std::string out_;
  std::size_t written_ = 0;
  bool keep_open_ = false;
  std::size_t requests_ = 0;
  std::size_t lingered_ = 0;
};

}  // namespace slurmlet::podapi
