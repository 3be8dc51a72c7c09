#pragma once

// OpenSSL's way to a non-blocking socket that it does not own: unlike its own socket BIO it raises
// no SIGPIPE and takes no more from the peer than it is allowed to. Internal to the component.

#include <cstddef>

#include "tls/openssl_ptr.h"

namespace slurmlet::tls {

// Lives as long as the BIO.
struct SocketLink {
  int socket = -1;
  std::size_t allowance = 0;  // bytes that may still be read; reading beyond is an error
  bool is_overdrawn = false;  // somebody tried
  bool is_at_end = false;     // the peer ended its side
  int error_number = 0;       // errno of the last failure that will not pass
};

// nullptr when memory is short.
BioPtr make_socket_bio(SocketLink& link);

}  // namespace slurmlet::tls
