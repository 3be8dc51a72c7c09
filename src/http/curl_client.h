#pragma once

// The libcurl implementation of Client (see client.h).

#include <memory>
#include <string>

#include "base/result.h"
#include "http/client.h"
#include "tls/client_identity.h"

namespace slurmlet::http {

struct Endpoint {
  std::string url;          // "https://host:6443", no trailing slash; a path prefix is kept
  std::string proxy;        // "" = none (the environment's proxies are not used)
  std::string server_name;  // tls-server-name of kubeconfig: SNI and verification; "" = from url
  std::string user_agent;
  std::string unix_socket = {};  // connect here instead of to the URL's host (http://localhost)
};

// Supplies the bearer token for each request, or "" for none (read per request: tokens rotate).
using TokenSource = std::function<std::string()>;

// The server, and the client's identity. Immutable once it is handed out.
struct Credentials {
  Endpoint endpoint;
  std::shared_ptr<const tls::ClientIdentity> identity;  // CA bundle, client certificate and key
  TokenSource token;
};

// What to use now; thread-safe and cheap, since it is called before each request and each wait().
// When it gives another object than before, the client's idle connections are closed, and its open
// streams end as if the server had ended them, so that everything goes on with the new one within
// one turn of the loop; a call under way is not disturbed. Credentials of no use (a URL that is
// none) leave those before them in use, but calls fail with the reason until the source gives
// others. Never null.
using CredentialSource = std::function<std::shared_ptr<const Credentials>()>;

// How long the connections of a client are used, asked anew each time. Then calls and streams begin
// with a fresh one, so that load spreads over all servers again. If the first call over it fails,
// the later ones go on with the old one for as long again. Streams under way stay where they are.
using ConnectionLife = std::function<Duration()>;
ConnectionLife usual_connection_life();

Result<std::unique_ptr<Client>> make_curl_client(CredentialSource source,
                                                 ConnectionLife life = usual_connection_life());

// A client of another server that shares the waiting of `first` (which make_curl_client() made):
// wait() and call() of either move the streams of both, and news of either's streams end a wait()
// of either. Same thread; must not outlive `first`. All else is per client: connections,
// credentials (asked for at its own requests and waits only), interrupt(), set_abort_fd().
Result<std::unique_ptr<Client>> make_sibling(Client& first, CredentialSource source);

// The same with credentials that never change.
Result<std::unique_ptr<Client>> make_curl_client(
    const Endpoint& endpoint, std::shared_ptr<const tls::ClientIdentity> identity,
    TokenSource token);

}  // namespace slurmlet::http
