#pragma once

// Callers and requests for tests of the gate and the routes.

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fakes/fake_clock.h"
#include "podapi/server.h"

namespace slurmlet::podapi {

inline RequestHead request(std::string method, std::string path,
                           const std::string& authorization = "") {
  RequestHead head;
  head.method = std::move(method);
  head.path = std::move(path);
  if (!authorization.empty()) {
    head.headers.emplace_back("authorization", authorization);
  }
  return head;
}

inline RequestHead with_token(std::string path, const std::string& token) {
  return request("GET", std::move(path), "Bearer " + token);
}

inline Caller from(const std::string& host) {
  Caller caller;
  caller.host = host;
  return caller;
}

inline Caller certificate(const std::string& name, std::vector<std::string> organizations = {}) {
  Caller caller;
  caller.address = "192.0.2.7:40412";
  caller.certificate = tls::CertificateSummary{};
  caller.certificate->common_name = name;
  caller.certificate->organizations = std::move(organizations);
  caller.certificate->not_after = WallTime{fakes::FakeClock::kStart} + std::chrono::hours{1};
  return caller;
}

inline nlohmann::json json_of(const Response& response) {
  return nlohmann::json::parse(response.body, nullptr, false);
}

inline std::string header(const Response& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) {
      return value;
    }
  }
  return "";
}

}  // namespace slurmlet::podapi
