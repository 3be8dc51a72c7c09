#include "podapi/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "podapi/connection_table.h"
#include "podapi/http_answerer.h"
#include "podapi/listener.h"

namespace slurmlet::podapi {
namespace {

using State = ServerConnection::State;
using Event = ServerConnection::Event;

constexpr ConnectionId kListener = 0;
constexpr int kEventsPerStep = 64;
constexpr int kAcceptsPerStep = 64;
// Connections wait in the kernel's queue meanwhile; it is tried again sooner when one closes.
constexpr std::chrono::seconds kOutOfDescriptorsPause{1};

bool is_out_of_resources(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS ||
         error_number == ENOMEM;
}

Response plain_text(int status, const std::string& line) {
  Response response;
  response.status = status;
  response.body = line + "\n";
  return response;
}

}  // namespace

class Server::Engine {
 public:
  Engine(ServerOptions options, RequestHandler& handler)
      : options_(std::move(options)),
        handler_(handler),
        answerer_(std::chrono::floor<std::chrono::seconds>(options_.idle_timeout),
                  options_.max_requests) {}
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Status start();
  SteadyTime step(Now now);
  int port() const { return listener_.port; }
  int fd() const { return epoll_.get(); }
  const ServerCounters& counters() const { return counters_; }

 private:
  void accept_some(SteadyTime now);
  void admit(UniqueFd socket, const sockaddr_storage& from, SteadyTime now);
  bool make_room(const std::string& host);
  bool evict_one_of(const std::string* host);
  void pause_accepting(SteadyTime until);
  void watch_listener(std::uint32_t events);

  void advance(ConnectionId id, Now now);
  void begin(ConnectionId id, ServerConnection& connection, Now now);
  void refuse(ServerConnection& connection, int status, const std::string& why, Now now);
  void respond(ServerConnection& connection, const RequestHead& head, const Response& response,
               bool keep_open, Now now);
  void deliver_answers(Now now, SteadyTime& next);
  void expire(Now now);
  // Tells epoll what the connection waits for now, or drops it if it is closed.
  void settle(ConnectionId id);
  Entries::iterator drop(Entries::iterator entry);
  void forget(ServerConnection& connection);
  SteadyTime next_deadline() const;

  ServerOptions options_;
  RequestHandler& handler_;
  HttpAnswerer answerer_;
  Listener listener_;
  UniqueFd epoll_;
  Entries entries_;
  std::map<RequestId, ConnectionId> waiting_;
  ConnectionId last_connection_ = kListener;
  RequestId last_request_ = 0;
  SteadyTime paused_until_ = kNever;  // kNever: not paused
  ServerCounters counters_;
};

Server::Engine::~Engine() {
  for (auto& [id, entry] : entries_) {
    forget(*entry.connection);
  }
}

Status Server::Engine::start() {
  if (listener_.socket) {
    return Error{Code::kInternal, "the server is already running"};
  }
  auto listener = open_listener(options_);
  if (!listener) {
    return listener.error();
  }
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) {
    return errno_error(errno, "epoll_create1");
  }
  listener_ = std::move(*listener);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kListener;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.socket.get(), &event) != 0) {
    return errno_error(errno, "epoll_ctl");
  }
  return {};
}

SteadyTime Server::Engine::step(Now now) {
  if (paused_until_ <= now.steady) {
    paused_until_ = kNever;
    watch_listener(EPOLLIN);
  }
  std::array<epoll_event, kEventsPerStep> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), kEventsPerStep, 0);
  for (int i = 0; i < ready; ++i) {
    const ConnectionId id = events[static_cast<std::size_t>(i)].data.u64;
    if (id == kListener) {
      accept_some(now.steady);
    } else {
      advance(id, now);
    }
  }
  SteadyTime next = kNever;
  deliver_answers(now, next);
  expire(now);
  return std::min(next, next_deadline());
}

void Server::Engine::accept_some(SteadyTime now) {
  for (int i = 0; i < kAcceptsPerStep; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    UniqueFd socket{::accept4(listener_.socket.get(), reinterpret_cast<sockaddr*>(&from), &size,
                              SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (socket) {
      admit(std::move(socket), from, now);
    } else if (is_out_of_resources(errno)) {
      return pause_accepting(now + kOutOfDescriptorsPause);
    } else if (errno == EAGAIN) {
      return;
    }
    // Else it went away while it waited to be accepted.
  }
}

void Server::Engine::admit(UniqueFd socket, const sockaddr_storage& from, SteadyTime now) {
  ++counters_.accepted;
  auto peer = name_peer(from);
  const auto identity = options_.identity ? options_.identity() : nullptr;
  if ((options_.identity && !identity) || !make_room(peer.host)) {
    ++counters_.turned_away;
    return;
  }
  auto session = identity ? tls::ServerSession::make(*identity, socket.get()) : nullptr;
  if (identity && !session) {
    ++counters_.turned_away;
    return;
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Entry entry;
  entry.host = std::move(peer.host);
  entry.connection = std::make_unique<ServerConnection>(std::move(socket), std::move(peer.address),
                                                        std::move(session), options_, now);
  epoll_event event{};
  event.events = entry.watched = entry.connection->wanted_events();
  event.data.u64 = ++last_connection_;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, entry.connection->fd(), &event) != 0) {
    ++counters_.turned_away;
    return;
  }
  entries_.emplace(last_connection_, std::move(entry));
  counters_.open = entries_.size();
}

bool Server::Engine::make_room(const std::string& host) {
  if (count_from(entries_, host) >= options_.max_per_address) {
    return evict_one_of(&host);
  }
  return entries_.size() < options_.max_connections || evict_one_of(nullptr);
}

bool Server::Engine::evict_one_of(const std::string* host) {
  const auto chosen = choose_to_evict(entries_, host);
  if (!chosen) {
    return false;
  }
  ++counters_.evicted;
  drop(entries_.find(*chosen));
  return true;
}

void Server::Engine::pause_accepting(SteadyTime until) {
  paused_until_ = until;
  watch_listener(0);
}

void Server::Engine::watch_listener(std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = kListener;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.socket.get(), &event);
}

void Server::Engine::advance(ConnectionId id, Now now) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return;  // closed since epoll_wait(2) told of it
  }
  ServerConnection& connection = *found->second.connection;
  switch (connection.advance(now.steady)) {
    case Event::kRequest:
      begin(id, connection, now);
      break;
    case Event::kRefused:
      ++counters_.refused_heads;
      refuse(connection, connection.refusal_status(), connection.refusal(), now);
      break;
    case Event::kHandshakeFailed:
      ++counters_.handshakes_failed;
      break;
    case Event::kNone:
      break;
  }
  settle(id);
}

void Server::Engine::begin(ConnectionId id, ServerConnection& connection, Now now) {
  const RequestId request = ++last_request_;
  const auto response = handler_.begin(request, connection.caller(), connection.head(), now);
  if (response) {
    const bool keep_open = connection.head().keep_alive && connection.may_stay_open(now.steady);
    return respond(connection, connection.head(), *response, keep_open, now);
  }
  connection.request = request;
  waiting_.emplace(request, id);
}

void Server::Engine::refuse(ServerConnection& connection, int status, const std::string& why,
                            Now now) {
  RequestHead nothing;
  nothing.method = "GET";
  respond(connection, nothing, plain_text(status, why), false, now);
}

void Server::Engine::respond(ServerConnection& connection, const RequestHead& head,
                             const Response& response, bool keep_open, Now now) {
  ++counters_.answers[response.status];
  connection.let_through = connection.let_through || response.status < 400;
  std::string text = answerer_.answer(head, response, keep_open);
  if (text.empty()) {
    return connection.close();
  }
  connection.answer(std::move(text), keep_open, now.steady);
}

void Server::Engine::deliver_answers(Now now, SteadyTime& next) {
  for (const auto& [request, response] : handler_.take_answers(now, next)) {
    const auto waiting = waiting_.find(request);
    if (waiting == waiting_.end()) {
      continue;
    }
    const ConnectionId id = waiting->second;
    waiting_.erase(waiting);
    ServerConnection& connection = *entries_.at(id).connection;
    connection.request = 0;
    const bool keep_open = connection.head().keep_alive && connection.may_stay_open(now.steady);
    respond(connection, connection.head(), response, keep_open, now);
    settle(id);
  }
}

void Server::Engine::expire(Now now) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    ServerConnection& connection = *it->second.connection;
    if (now.steady < connection.deadline()) {
      ++it;
      continue;
    }
    if (connection.state() == State::kWaiting) {
      ++counters_.timed_out;
      const RequestHead head = connection.head();
      forget(connection);
      respond(connection, head, plain_text(503, "the answer takes too long"), false, now);
      settle((it++)->first);
      continue;
    }
    if (connection.state() != State::kLingering && !connection.is_idle()) {
      ++counters_.timed_out;
    }
    it = drop(it);
  }
}

void Server::Engine::settle(ConnectionId id) {
  const auto found = entries_.find(id);
  Entry& entry = found->second;
  if (entry.connection->state() == State::kClosed) {
    drop(found);
    return;
  }
  const std::uint32_t wanted = entry.connection->wanted_events();
  if (wanted == entry.watched) {
    return;
  }
  epoll_event event{};
  event.events = entry.watched = wanted;
  event.data.u64 = id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, entry.connection->fd(), &event) != 0) {
    drop(found);
  }
}

Entries::iterator Server::Engine::drop(Entries::iterator entry) {
  forget(*entry->second.connection);
  const auto next = entries_.erase(entry);
  counters_.open = entries_.size();
  if (paused_until_ != kNever) {
    paused_until_ = SteadyTime{};  // long ago: a descriptor is free again
  }
  return next;
}

void Server::Engine::forget(ServerConnection& connection) {
  if (connection.request != 0) {
    handler_.forget(connection.request);
    waiting_.erase(std::exchange(connection.request, 0));
  }
}

SteadyTime Server::Engine::next_deadline() const {
  SteadyTime next = paused_until_;
  for (const auto& [id, entry] : entries_) {
    next = std::min(next, entry.connection->deadline());
  }
  return next;
}

Server::Server(ServerOptions options, RequestHandler& handler)
    : engine_(std::make_unique<Engine>(std::move(options), handler)) {}
Server::~Server() = default;
Status Server::start() { return engine_->start(); }
int Server::port() const { return engine_->port(); }
int Server::fd() const { return engine_->fd(); }
SteadyTime Server::step(Now now) { return engine_->step(now); }
const ServerCounters& Server::counters() const { return engine_->counters(); }

}  // namespace slurmlet::podapi
