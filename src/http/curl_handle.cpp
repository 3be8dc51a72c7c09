#include "http/curl_handle.h"

#include <string>

namespace slurmlet::http {

Status init_curl() {
  // Never cleaned up: other threads may be inside libcurl when the process ends.
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) {
    return Error{Code::kInternal,
                 std::string{"libcurl does not start: "} + curl_easy_strerror(code)};
  }
  return {};
}

ConnectionPool make_connection_pool() {
  CURLSH* share = curl_share_init();
  if (share == nullptr) {
    return nullptr;
  }
  ConnectionPool pool{share, [](CURLSH* handle) { curl_share_cleanup(handle); }};
  // One thread uses the pool, hence no lock functions.
  if (curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) != CURLSHE_OK) {
    return nullptr;
  }
  return pool;
}

bool append_header(HeaderList& headers, const char* line) {
  curl_slist* longer = curl_slist_append(headers.get(), line);
  if (longer == nullptr) {
    return false;
  }
  (void)headers.release();  // `longer` starts with it
  headers.reset(longer);
  return true;
}

}  // namespace slurmlet::http
