#pragma once

// A server with a watch, and a client that opens it.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "http/client_fixture.h"

namespace slurmlet::http {

// A watch at /watch that lasts until the client closes it; all else is answered at once.
inline void respond_or_watch(Exchange& exchange) {
  if (exchange.request().path != "/watch") {
    exchange.respond(200, "ok");
    return;
  }
  exchange.start_chunked(200);
  exchange.chunk("event");
  exchange.wait_for_client_to_close();
}

// Opens a watch of `client`, waiting with `waiter`, which may be the same.
inline std::unique_ptr<Stream> open_watch(Client& client, Client& waiter) {
  auto stream = client.open_stream(get("/watch"));
  std::string got;
  while (got != "event" && !stream->ended()) {
    (void)waiter.wait(steady_now() + std::chrono::seconds{10}, {});
    got += stream->take();
  }
  EXPECT_EQ(got, "event");
  return stream;
}

inline std::unique_ptr<Stream> open_watch(Client& client) { return open_watch(client, client); }

}  // namespace slurmlet::http
