#pragma once

// Turns libcurl's result of a transfer into one of our Errors. Pure. Internal to the component.

#include <curl/curl.h>

#include <string>

#include "base/result.h"

namespace slurmlet::http {

struct TransportFailure {
  CURLcode code = CURLE_OK;
  long os_error = 0;         // errno of the failed connect, or 0
  std::string detail;        // what libcurl wrote to its error buffer, may be ""
  bool unix_socket = false;  // it was one that was connected to
};

// `what` says what was tried: "GET https://host:6443/api/v1/nodes/n1".
Error transport_error(const std::string& what, const TransportFailure& failure);

}  // namespace slurmlet::http
