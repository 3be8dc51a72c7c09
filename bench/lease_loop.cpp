// The floor that slurmlet is measured against: one libcurl handle that renews one Lease every ten
// seconds over TLS with a client certificate, and nothing else.
//
// usage: lease_loop SERVER CA CERTIFICATE KEY NODE

#include <curl/curl.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>

namespace {

std::string micro_time() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count() %
      1000000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ", utc.tm_year + 1900,
                utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                static_cast<long>(micros));
  return text;
}

std::size_t discard(char*, std::size_t size, std::size_t count, void*) { return size * count; }

long send(CURL* curl, const std::string& url, const char* method, const char* content_type,
          const std::string& body) {
  curl_slist* headers = curl_slist_append(nullptr, content_type);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, body.c_str());
  long status = 0;
  if (curl_easy_perform(curl) == CURLE_OK) {
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  }
  curl_slist_free_all(headers);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: lease_loop SERVER CA CERTIFICATE KEY NODE\n");
    return 2;
  }
  const std::string node = argv[5];
  const std::string leases =
      std::string{argv[1]} + "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
  CURL* curl = curl_easy_init();
  curl_easy_setopt(curl, CURLOPT_CAINFO, argv[2]);
  curl_easy_setopt(curl, CURLOPT_SSLCERT, argv[3]);
  curl_easy_setopt(curl, CURLOPT_SSLKEY, argv[4]);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, 10L);
  send(curl, leases, "POST", "Content-Type: application/json",
       R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":")" + node +
           R"("},"spec":{"holderIdentity":")" + node +
           R"(","leaseDurationSeconds":40,"renewTime":")" + micro_time() + "\"}}");
  while (true) {
    const long status =
        send(curl, leases + "/" + node, "PATCH", "Content-Type: application/merge-patch+json",
             R"({"spec":{"renewTime":")" + micro_time() + "\"}}");
    if (status != 200) {
      std::fprintf(stderr, "lease not renewed: HTTP %ld\n", status);
    }
    std::this_thread::sleep_for(std::chrono::seconds{10});
  }
}
