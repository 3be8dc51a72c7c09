#pragma once

// Owning pointers for libcurl's handles. Internal to the component.

#include <curl/curl.h>

#include <memory>

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

}  // namespace slurmlet::http
