#include "podapi/status_json.h"

#include <nlohmann/json.hpp>

#include "podapi/request_path.h"

namespace slurmlet::podapi {

using nlohmann::json;

namespace {

Response response_of(const Rejection& rejection, std::string content_type, std::string body) {
  Response response;
  response.status = rejection.code;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  if (rejection.retry_after_seconds > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(rejection.retry_after_seconds));
  }
  return response;
}

}  // namespace

Response status_response(const Rejection& rejection) {
  json status{{"kind", "Status"},      {"apiVersion", "v1"},           {"metadata", json::object()},
              {"status", "Failure"},   {"message", rejection.message}, {"reason", rejection.reason},
              {"code", rejection.code}};
  if (rejection.retry_after_seconds > 0) {
    status["details"] = {{"retryAfterSeconds", rejection.retry_after_seconds}};
  }
  return response_of(rejection, "application/json",
                     status.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

Response rejection_response(std::string_view path, const Rejection& rejection) {
  return is_at_or_below(path, "/containerLogs")
             ? response_of(rejection, "text/plain; charset=utf-8", rejection.message)
             : status_response(rejection);
}

}  // namespace slurmlet::podapi
