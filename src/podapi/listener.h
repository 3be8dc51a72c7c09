#pragma once

// The listening TCP socket of the Server, and the names of those who connect. Internal to the
// component.

#include <sys/socket.h>

#include "base/result.h"
#include "base/unique_fd.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

struct Listener {
  UniqueFd socket;  // non-blocking
  int port = 0;
};

// On address and port of the options. Errors as Server::start().
Result<Listener> open_listener(const ServerOptions& options);

// Its source and its address with the port: "192.0.2.7:40412", "[2001:db8::1]:40412".
Caller name_peer(const sockaddr_storage& address);

}  // namespace slurmlet::podapi
