#include "podapi/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "podapi/caller_budget.h"
#include "podapi/connection_table.h"
#include "podapi/http_answerer.h"
#include "podapi/port.h"

namespace slurmlet::podapi {
namespace {

using State = ServerConnection::State;
using Event = ServerConnection::Event;

constexpr ConnectionId kListener = 0;
constexpr int kEventsPerStep = 64;
constexpr int kAcceptsPerStep = 64;

// Whether the client has disconnected, or closed its side without sending a byte.
bool has_ended(int socket, std::uint32_t events) {
  char byte = 0;
  return (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0 ||
         ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
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
                  options_.max_requests),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        port_(options_, epoll_.get(), kListener),
        handshakes_(options_.handshakes) {}
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Status start();
  SteadyTime step(Now now);
  int port() const { return port_.number(); }
  int fd() const { return epoll_.get(); }
  ServerCounters counters() const;

 private:
  void accept_some(SteadyTime now);
  void admit(UniqueFd socket, const sockaddr_storage& from, SteadyTime now);
  bool make_room(const std::string& host);

  void advance(ConnectionId id, std::uint32_t events, Now now);
  void start_handshakes(Now now);
  void start_handshake(ConnectionId id, Now now);
  void begin(ConnectionId id, ServerConnection& connection, Now now);
  void respond(ServerConnection& connection, const Response& response, bool keep_open, Now now);
  void deliver_answers(Now now, SteadyTime& next);
  void expire(Now now);
  // Updates epoll's events, or drops the connection if it is closed.
  void settle(ConnectionId id);
  Entries::iterator drop(Entries::iterator entry);
  void forget(ServerConnection& connection);
  SteadyTime next_deadline() const;

  ServerOptions options_;
  RequestHandler& handler_;
  HttpAnswerer answerer_;
  UniqueFd epoll_;
  Port port_;
  CallerBudget handshakes_;
  Entries entries_;
  std::map<RequestId, ConnectionId> waiting_;
  ConnectionId last_connection_ = kListener;
  RequestId last_request_ = 0;
  ServerCounters counters_;
};

Server::Engine::~Engine() {
  for (auto& [id, entry] : entries_) {
    forget(*entry.connection);
  }
}

Status Server::Engine::start() {
  if (port_.is_open()) {
    return Error{Code::kInternal, "the server is already running"};
  }
  return port_.open();
}

ServerCounters Server::Engine::counters() const {
  ServerCounters out = counters_;
  out.listening = port_.is_open();
  out.bind_failures = port_.failures();
  return out;
}

SteadyTime Server::Engine::step(Now now) {
  std::array<epoll_event, kEventsPerStep> events{};
  const int ready = ::epoll_wait(epoll_.get(), events.data(), kEventsPerStep, 0);
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kListener) {
      accept_some(now.steady);
    } else {
      advance(event.data.u64, event.events, now);
    }
  }
  start_handshakes(now);
  SteadyTime next = kNever;
  deliver_answers(now, next);
  expire(now);
  return std::min({next, next_deadline(), port_.step(now.steady)});
}

void Server::Engine::accept_some(SteadyTime now) {
  for (int i = 0; i < kAcceptsPerStep; ++i) {
    sockaddr_storage from{};
    UniqueFd socket = port_.accept(from, now);
    if (!socket) {
      return;
    }
    admit(std::move(socket), from, now);
  }
}

void Server::Engine::admit(UniqueFd socket, const sockaddr_storage& from, SteadyTime now) {
  ++counters_.accepted;
  auto peer = name_peer(from);
  if ((options_.identity && !options_.identity()) || !make_room(peer.host)) {
    ++counters_.turned_away;
    return;
  }
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  Entry entry;
  entry.is_known = handshakes_.knows(peer.host);
  entry.connection =
      std::make_unique<ServerConnection>(std::move(socket), std::move(peer), options_, now);
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
  const bool for_known = handshakes_.knows(host) || !options_.identity;
  const bool is_over = count_from(entries_, host) >= options_.max_per_address;
  if (!is_over && entries_.size() < options_.max_connections) {
    return true;
  }
  const auto chosen = choose_to_evict(entries_, is_over ? &host : nullptr, is_over || for_known);
  if (!chosen) {
    return false;
  }
  ++counters_.evicted;
  drop(entries_.find(*chosen));
  return true;
}

void Server::Engine::start_handshakes(Now now) {
  std::vector<ConnectionId> due;  // in order of arrival
  for (const auto& [id, entry] : entries_) {
    if (entry.handshake_at <= now.steady) {
      due.push_back(id);
    }
  }
  for (const ConnectionId id : due) {
    start_handshake(id, now);
  }
}

// Starts the TLS handshake, if the limit permits.
void Server::Engine::start_handshake(ConnectionId id, Now now) {
  Entry& entry = entries_.at(id);
  ServerConnection& connection = *entry.connection;
  const SteadyTime turn = handshakes_.take(connection.caller().host, now.steady);
  if (turn > now.steady) {
    counters_.handshakes_delayed += entry.handshake_at == kNotTried ? 1 : 0;
    entry.handshake_at = turn;
    connection.wait_for_handshake();
    return settle(id);
  }
  entry.handshake_at = kNever;
  const auto identity = options_.identity();
  auto session = identity ? tls::ServerSession::make(*identity, connection.fd()) : nullptr;
  if (session) {
    connection.shake_hands(std::move(session));
  } else {
    ++counters_.turned_away;
    connection.close();
  }
  advance(id, 0, now);
}

void Server::Engine::advance(ConnectionId id, std::uint32_t events, Now now) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) {
    return;  // closed since epoll_wait(2)
  }
  ServerConnection& connection = *found->second.connection;
  if (connection.state() == State::kNew) {
    if (has_ended(connection.fd(), events)) {
      connection.close();
    } else if (found->second.handshake_at == kNever) {
      found->second.handshake_at = kNotTried;
    }
  }
  switch (connection.advance(now.steady)) {
    case Event::kRequest:
      begin(id, connection, now);
      break;
    case Event::kRejected:
      ++counters_.rejected_heads;
      respond(connection, plain_text(connection.rejection_status(), connection.rejection()), false,
              now);
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
    return respond(connection, *response, true, now);
  }
  connection.request = request;
  waiting_.emplace(request, id);
}

// `keep_open`: unless the client, a limit or the rule below forbids it.
void Server::Engine::respond(ServerConnection& connection, const Response& response, bool keep_open,
                             Now now) {
  const RequestHead& head = connection.head();
  ++counters_.answers[response.status];
  connection.let_through = connection.let_through || response.status < 400;
  // Unauthenticated clients need a new handshake for each answer, which is limited.
  keep_open = keep_open && head.keep_alive && connection.may_stay_open(now.steady) &&
              (connection.let_through || connection.is_plain() ||
               handshakes_.knows(connection.caller().host));
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
    respond(connection, response, true, now);
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
      forget(connection);
      respond(connection, plain_text(503, "the answer takes too long"), false, now);
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
  if (entry.connection->let_through) {
    handshakes_.know(entry.connection->caller().host);
  }
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
  port_.end_pause();
  return next;
}

void Server::Engine::forget(ServerConnection& connection) {
  if (connection.request != 0) {
    handler_.forget(connection.request);
    waiting_.erase(std::exchange(connection.request, 0));
  }
}

SteadyTime Server::Engine::next_deadline() const {
  SteadyTime next = kNever;
  for (const auto& [id, entry] : entries_) {
    next = std::min({next, entry.handshake_at, entry.connection->deadline()});
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
ServerCounters Server::counters() const { return engine_->counters(); }

}  // namespace slurmlet::podapi
