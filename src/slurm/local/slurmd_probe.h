#pragma once

// Asks slurmd itself whether it serves: GET /readyz on SlurmdPort, which slurmd has since 25.11
// (src/slurmd/slurmd/http.c of Slurm: 204 while it services RPCs, 500 while it is quiesced; off
// with CommunicationParameters=disable_http). Older ones log an error for such a connection, so
// they are never asked. One request over loopback, no authentication, no exec, no slurmstepd is
// woken: it may be asked while jobs run. What is not a plain yes or no is no answer: slurmd may
// listen elsewhere.
//
// A step object over http::Client streams (they wake that client's wait()). Not thread-safe.

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "http/client.h"

namespace slurmlet::slurm {

// Whether slurmd of this version ("25.11.8-0pre1") has /readyz.
bool has_readyz(std::string_view version);

class SlurmdProbe {
 public:
  static constexpr Duration kTimeout = std::chrono::seconds{5};
  // A client of http://127.0.0.1:PORT; null while there can be none.
  using ClientMaker = std::function<std::unique_ptr<http::Client>(int port)>;

  explicit SlurmdProbe(ClientMaker make_client) : make_client_(std::move(make_client)) {}

  // Begins a question unless one is under way; `port` is that of the slurmd here. 0 or a slurmd
  // without /readyz forgets what was known.
  void ask(int port, std::string_view version, SteadyTime now);
  // Another slurmd runs, or none: what was known is about the one before.
  void forget();
  // When to call again at the latest.
  SteadyTime step(SteadyTime now);

  bool asking() const { return stream_ != nullptr; }
  // What slurmd last said; nothing if it could not be asked.
  std::optional<bool> ready() const { return ready_; }

 private:
  void end(std::optional<bool> ready);

  ClientMaker make_client_;
  int port_ = 0;
  std::optional<bool> ready_;
  SteadyTime deadline_ = kNever;
  std::unique_ptr<http::Client> client_;
  std::unique_ptr<http::Stream> stream_;  // goes before its client
};

}  // namespace slurmlet::slurm
