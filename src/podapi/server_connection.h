#pragma once

// One accepted connection of the Server: TLS handshake, heads of requests, answers, farewell.
// Advances as far as the socket allows and never blocks; knows deadlines but no clock, and neither
// epoll nor the handler. Internal to the component; not thread-safe.
//
// Memory that a client can make us hold for a connection: the head being read (request_head.h),
// kReadBytes of what came after it, the TLS session, and the one answer that is being written.
// While a request waits for its answer nothing is read, so that the kernel's buffer fills and the
// client's own writing stops.

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

class ServerConnection {
 public:
  static constexpr std::size_t kReadBytes = 4096;  // taken off the socket at once
  static constexpr int kMaxReads = 64;             // in one turn; others wait, and the deadline
  static constexpr std::size_t kWriteBytes = std::size_t{256} << 10;  // written in one turn
  static constexpr std::size_t kLingerBytes = std::size_t{64} << 10;  // read away before closing
  static constexpr std::chrono::seconds kLingerTime{2};

  enum class State { kNew, kHandshaking, kReading, kWaiting, kWriting, kLingering, kClosed };
  enum class Event {
    kNone,             // nothing for the server to do
    kRequest,          // head() is complete: answer() is due, now or later
    kRefused,          // the head is malformed: answer() is due, and the connection ends after it
    kHandshakeFailed,  // reported once
  };

  // `socket` is non-blocking. The options must outlive it. Where they have an identity, nothing is
  // done before shake_hands().
  ServerConnection(UniqueFd socket, Caller caller, const ServerOptions& options, SteadyTime now);
  void shake_hands(std::unique_ptr<tls::ServerSession> session);
  // Nothing but the end of the client's side is watched for until then.
  void wait_for_turn();

  // As far as possible in one turn, which is at most one request.
  Event advance(SteadyTime now);
  // The answer to the request or refusal that advance() reported.
  void answer(std::string text, bool keep_open, SteadyTime now);
  void close() { state_ = State::kClosed; }

  int fd() const { return socket_.get(); }
  State state() const { return state_; }
  // What epoll(7) is to watch for.
  std::uint32_t wanted_events() const { return wanted_; }
  // When the present state has lasted too long.
  SteadyTime deadline() const { return deadline_; }

  const Caller& caller() const { return caller_; }
  const RequestHead& head() const { return reader_.head(); }
  int refusal_status() const { return reader_.refusal_status(); }
  const std::string& refusal() const { return reader_.refusal(); }
  // Whether the connection may serve another request after the present one.
  bool may_stay_open(SteadyTime now) const;
  bool is_plain() const { return !options_.identity; }
  // Between two requests, with nothing of the next one received.
  bool is_idle() const;

  // Set by the server: the request that waits for its answer; whether one was ever let through.
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
  // Watches for what it waits for, if that is its state.
  bool waits(tls::ServerSession::State state);
  // Whether bytes went through; waits or closes otherwise.
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
  std::string unread_;  // received beyond the present head
  std::string out_;
  std::size_t written_ = 0;
  bool keep_open_ = false;
  std::size_t requests_ = 0;
  std::size_t lingered_ = 0;
};

}  // namespace slurmlet::podapi
