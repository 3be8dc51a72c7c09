#include "podapi/server_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace slurmlet::podapi {
namespace {

using SessionState = tls::ServerSession::State;

constexpr std::string_view kSpeakTls =
    "HTTP/1.0 400 Bad Request\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Connection: close\r\n"
    "\r\n"
    "Client sent an HTTP request to an HTTPS server.\n";

// Maps the result of recv(2) or send(2) to that of a TLS session.
template <typename Call>
tls::ServerSession::Io transfer(SessionState when_blocked, const Call& call) {
  ssize_t n = 0;
  do {
    n = call();
  } while (n < 0 && errno == EINTR);
  if (n > 0) {
    return {SessionState::kDone, static_cast<std::size_t>(n)};
  }
  return {n < 0 && errno == EAGAIN ? when_blocked : SessionState::kClosed, 0};
}

}  // namespace

ServerConnection::ServerConnection(UniqueFd socket, Caller caller, const ServerOptions& options,
                                   SteadyTime now)
    : socket_(std::move(socket)),
      options_(options),
      caller_(std::move(caller)),
      state_(options.identity ? State::kNew : State::kReading),
      wanted_(EPOLLIN),
      born_(now),
      deadline_(now + options.head_timeout),
      reader_(options.head) {}

void ServerConnection::shake_hands(std::unique_ptr<tls::ServerSession> session) {
  session_ = std::move(session);
  state_ = State::kHandshaking;
  wanted_ = EPOLLIN;
}

void ServerConnection::wait_for_handshake() { wanted_ = EPOLLRDHUP; }

bool ServerConnection::may_stay_open(SteadyTime now) const {
  return requests_ < options_.max_requests && now < born_ + options_.max_age;
}

bool ServerConnection::is_idle() const {
  return state_ == State::kReading && requests_ > 0 && !reader_.has_begun() && unread_.empty();
}

ServerConnection::Event ServerConnection::advance(SteadyTime now) {
  if (state_ == State::kHandshaking) {
    const Event event = handshake();
    if (event == Event::kHandshakeFailed) {
      begin_linger(now);
    }
    if (state_ != State::kReading) {
      return event;
    }
  }
  if (state_ == State::kReading) {
    return read_head(now);
  }
  if (state_ == State::kWriting) {
    write(now);
  } else if (state_ == State::kLingering) {
    linger();
  } else if (state_ == State::kWaiting) {
    // Only the client's close is watched for here.
    state_ = State::kClosed;
  }
  return Event::kNone;
}

ServerConnection::Event ServerConnection::handshake() {
  const SessionState state = session_->handshake();
  if (state == SessionState::kDone) {
    caller_.certificate = session_->client_certificate();
    state_ = State::kReading;
    return Event::kNone;
  }
  if (waits(state)) {
    return Event::kNone;
  }
  if (session_->got_plain_http()) {
    // As Go's servers do; it fits into the empty send buffer.
    (void)!::send(socket_.get(), kSpeakTls.data(), kSpeakTls.size(), MSG_NOSIGNAL);
  }
  return Event::kHandshakeFailed;
}

ServerConnection::Event ServerConnection::read_head(SteadyTime now) {
  std::array<char, kReadBytes> buffer;
  for (int reads = 0;;) {
    if (unread_.empty()) {
      if (++reads > kMaxReads) {
        wanted_ = events_for_reading();
        return Event::kNone;
      }
      const Io got = receive(buffer.data(), buffer.size());
      if (!went(got)) {
        return Event::kNone;
      }
      unread_.assign(buffer.data(), got.bytes);
    }
    if (!reader_.has_begun() && requests_ > 0) {
      deadline_ = now + options_.head_timeout;
    }
    unread_.erase(0, reader_.feed(unread_));
    if (reader_.state() != HeadReader::State::kIncomplete) {
      break;
    }
  }
  ++requests_;
  state_ = State::kWaiting;
  wanted_ = EPOLLRDHUP;
  deadline_ = now + options_.answer_timeout;
  return reader_.state() == HeadReader::State::kComplete ? Event::kRequest : Event::kRejected;
}

void ServerConnection::answer(std::string text, bool keep_open, SteadyTime now) {
  out_ = std::move(text);
  written_ = 0;
  keep_open_ = keep_open;
  state_ = State::kWriting;
  wanted_ = EPOLLOUT;
  deadline_ = now + options_.answer_timeout;
  write(now);
}

void ServerConnection::write(SteadyTime now) {
  for (std::size_t turn = 0; written_ < out_.size() && turn < kWriteBytes;) {
    const Io put = send(std::string_view{out_}.substr(written_, kWriteBytes));
    if (!went(put)) {
      return;
    }
    written_ += put.bytes;
    turn += put.bytes;
  }
  if (written_ < out_.size()) {
    wanted_ = EPOLLOUT;
  } else if (keep_open_) {
    begin_next_request(now);
  } else {
    begin_linger(now);
  }
}

void ServerConnection::begin_next_request(SteadyTime now) {
  out_ = {};
  reader_.reset();
  unread_.shrink_to_fit();
  state_ = State::kReading;
  deadline_ = std::min(now + options_.idle_timeout, born_ + options_.max_age);
  if (session_) {
    session_->begin_request();
  }
  wanted_ = events_for_reading();
}

// Buffered bytes do not make the socket readable, so EPOLLOUT triggers the next step.
std::uint32_t ServerConnection::events_for_reading() const {
  const bool has_more = !unread_.empty() || (session_ && session_->has_buffered());
  return has_more ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

// Closing a socket with unread bytes resets the connection before the answer arrives, so the rest
// (a body) is discarded first, within bounds.
void ServerConnection::begin_linger(SteadyTime now) {
  out_ = {};
  unread_ = {};
  if (session_ && state_ != State::kHandshaking) {
    session_->close();
  }
  ::shutdown(socket_.get(), SHUT_WR);
  state_ = State::kLingering;
  wanted_ = EPOLLIN;
  deadline_ = now + kLingerTime;
  linger();
}

void ServerConnection::linger() {
  std::array<char, kReadBytes> buffer;
  while (lingered_ < kLingerBytes) {
    const ssize_t n = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0 && errno == EAGAIN) {
      return;
    }
    if (n <= 0) {
      break;
    }
    lingered_ += static_cast<std::size_t>(n);
  }
  state_ = State::kClosed;
}

bool ServerConnection::waits(SessionState state) {
  if (state != SessionState::kWantRead && state != SessionState::kWantWrite) {
    return false;
  }
  wanted_ = state == SessionState::kWantRead ? EPOLLIN : EPOLLOUT;
  return true;
}

bool ServerConnection::went(const Io& io) {
  if (io.state != SessionState::kDone && !waits(io.state)) {
    state_ = State::kClosed;
  }
  return io.state == SessionState::kDone;
}

ServerConnection::Io ServerConnection::receive(char* into, std::size_t size) {
  if (session_) {
    return session_->read(into, size);
  }
  return transfer(SessionState::kWantRead, [&] { return ::recv(socket_.get(), into, size, 0); });
}

ServerConnection::Io ServerConnection::send(std::string_view bytes) {
  if (session_) {
    return session_->write(bytes);
  }
  return transfer(SessionState::kWantWrite,
                  [&] { return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL); });
}

}  // namespace slurmlet::podapi
