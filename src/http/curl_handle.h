#pragma once

// Owning pointers for libcurl's handles, and its process-wide set-up. Internal to the component.

#include <curl/curl.h>

#include <memory>

#include "base/result.h"

namespace slurmlet::http {

template <auto release>
struct CurlReleaser {
  template <typename T>
  void operator()(T* handle) const {
    release(handle);
  }
};

using EasyHandle = std::unique_ptr<CURL, CurlReleaser<curl_easy_cleanup>>;
using MultiHandle = std::unique_ptr<CURLM, CurlReleaser<curl_multi_cleanup>>;
using HeaderList = std::unique_ptr<curl_slist, CurlReleaser<curl_slist_free_all>>;
using UrlHandle = std::unique_ptr<CURLU, CurlReleaser<curl_url_cleanup>>;
// A set of kept-alive connections. libcurl frees one only when no transfer uses it any more, so
// transfers hold it too.
using ConnectionPool = std::shared_ptr<CURLSH>;

// Sets libcurl up once per process; thread-safe.
Status init_curl();

// An empty pool for use by one thread; null when memory is short.
ConnectionPool make_connection_pool();

// Appends a header line; false when memory is short.
bool append_header(HeaderList& headers, const char* line);

}  // namespace slurmlet::http
