#pragma once

// The libcurl options of a transfer, grouped by what they are for. Each group returns false when
// libcurl refuses one (an option it was built without, or no memory), which ends the transfer: a
// security option that did not take effect must never pass unnoticed. Internal to the component.

#include <curl/curl.h>

#include <string>

#include "http/client.h"
#include "http/curl_handle.h"
#include "http/target.h"
#include "tls/client_identity.h"

namespace slurmlet::http {

// No redirects, netrc, environment proxies or protocols but http and https.
bool set_policy(CURL* easy, const Target& target);

// Trust and client certificate from `identity`; peer and name verified unless it is one that says
// otherwise (verifies_server()); TLS 1.2 or newer.
bool set_tls(CURL* easy, const tls::ClientIdentity* identity);

// Keep-alive, dead-peer detection, small buffers.
bool set_connection(CURL* easy);

// Method, URL and body; `body` must outlive the transfer.
bool set_request(CURL* easy, const Target& target, const Request& request, const std::string& body);

// kInvalid when a header of the request's own would end its line or is no header; not quoted.
Status check_headers(const Request& request);

// The request's headers, to be set with CURLOPT_HTTPHEADER; null when memory is short.
HeaderList make_headers(const Target& target, const Request& request, const std::string& token);

}  // namespace slurmlet::http
