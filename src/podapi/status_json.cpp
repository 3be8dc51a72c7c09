#include "podapi/status_json.h"

#include <nlohmann/json.hpp>

#include "podapi/request_path.h"

namespace slurmlet::podapi {

using nlohmann::json;

namespace {

Response response_of(const Refusal& refusal, std::string content_type, std::string body) {
  Response response;
  response.status = refusal.code;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  if (refusal.retry_after_seconds > 0) {
    response.headers.emplace_back("Retry-After", std::to_string(refusal.retry_after_seconds));
  }
  return response;
}

}  // namespace

Response status_response(const Refusal& refusal) {
  json status{{"kind", "Status"},    {"apiVersion", "v1"},         {"metadata", json::object()},
              {"status", "Failure"}, {"message", refusal.message}, {"reason", refusal.reason},
              {"code", refusal.code}};
  if (refusal.retry_after_seconds > 0) {
    status["details"] = {{"retryAfterSeconds", refusal.retry_after_seconds}};
  }
  return response_of(refusal, "application/json",
                     status.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
}

Response refusal_response(std::string_view path, const Refusal& refusal) {
  return is_at_or_below(path, "/containerLogs")
             ? response_of(refusal, "text/plain; charset=utf-8", refusal.message)
             : status_response(refusal);
}

}  // namespace slurmlet::podapi
