#include "app/daemon_client.h"

#include <fmt/format.h>

#include <utility>

#include "http/curl_client.h"
#include "podapi/routes.h"

namespace slurmlet::app {

Result<DaemonClient> DaemonClient::make(const config::Settings& settings) {
  const int port = settings.endpoint.healthz_port;
  if (port == 0) {
    return Error{Code::kInvalid,
                 "endpoint.healthzPort is 0, so the daemon cannot be asked; set it to a free port"};
  }
  std::string address = fmt::format("127.0.0.1:{}", port);
  http::Endpoint endpoint;
  endpoint.url = "http://" + address;
  endpoint.user_agent = "slurmlet/" SLURMLET_VERSION;
  auto client = http::make_curl_client(endpoint, nullptr, {});
  if (!client) {
    return client.error();
  }
  return DaemonClient{std::move(*client), std::move(address)};
}

Result<DaemonStatus> DaemonClient::ask(Duration timeout) {
  http::Request request;
  request.path = podapi::kStatusPath;
  request.timeout = timeout;
  const auto response = client_->call(request);
  if (!response && response.error().code == Code::kTimeout) {
    return Error{Code::kTimeout, fmt::format("slurmlet does not answer on {} in time; see "
                                             "systemctl status slurmlet",
                                             address_)};
  }
  if (!response) {
    return Error{Code::kUnavailable,
                 fmt::format("no slurmlet runs here: nobody answers on {} (endpoint.healthzPort); "
                             "see systemctl status slurmlet",
                             address_)};
  }
  if (response->status == 200) {
    if (auto status = daemon_status_from_json(response->body)) {
      return status;
    }
  }
  return Error{Code::kInvalid, fmt::format("what answers on {} is not this slurmlet (HTTP {}); set "
                                           "endpoint.healthzPort to a port of its own",
                                           address_, response->status)};
}

void DaemonClient::pause(Duration how_long) {
  (void)client_->wait(std::chrono::steady_clock::now() + how_long, {});
}

}  // namespace slurmlet::app
