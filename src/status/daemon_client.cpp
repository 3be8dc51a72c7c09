#include "status/daemon_client.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "host/listening.h"
#include "http/curl_client.h"
#include "podapi/routes.h"

namespace slurmlet::status {

bool may_be_daemon(uid_t uid, const std::string& state_dir) {
  struct stat seen {};
  return uid == 0 || uid == geteuid() ||
         (stat(state_dir.c_str(), &seen) == 0 && seen.st_uid == uid);
}

Result<DaemonClient> DaemonClient::make(const config::Settings& settings) {
  const int port = settings.endpoint.healthz_port;
  if (port == 0) {
    return Error{
        Code::kInvalid,
        "endpoint.healthzPort is 0, so the daemon cannot be queried; set it to a free port"};
  }
  http::Endpoint endpoint;
  endpoint.url = fmt::format("http://127.0.0.1:{}", port);
  endpoint.user_agent = "slurmlet/" SLURMLET_VERSION;
  auto client = TRY(http::make_curl_client(endpoint, nullptr, {}));
  return DaemonClient{std::move(client), port, settings.state_dir};
}

DaemonClient::DaemonClient(std::unique_ptr<http::Client> client, int port, std::string state_dir)
    : client_(std::move(client)),
      port_(port),
      address_(fmt::format("127.0.0.1:{}", port)),
      state_dir_(std::move(state_dir)) {}

Error DaemonClient::nobody() const {
  return {Code::kUnavailable, fmt::format("slurmlet is not running here: nothing answers on {} "
                                          "(endpoint.healthzPort); see systemctl status slurmlet",
                                          address_)};
}

Status DaemonClient::check_listener() const {
  const auto socket = host::listening_socket("/proc", port_, host::Reach::kLoopback);
  if (!socket) {
    return nobody();
  }
  if (may_be_daemon(socket->uid, state_dir_)) {
    return {};
  }
  const auto owner = host::who_listens("/proc", port_, host::Reach::kLoopback);
  return Error{
      Code::kDenied,
      fmt::format("not trusted: {} (endpoint.healthzPort) is held by {}, which is neither root nor "
                  "the owner of stateDir {}; stop that process, and see systemctl status slurmlet",
                  address_, host::to_text(owner ? *owner : host::PortOwner{socket->uid, 0, ""}),
                  state_dir_)};
}

Result<DaemonStatus> DaemonClient::query(Duration timeout) {
  http::Request request;
  request.path = podapi::kStatusPath;
  request.timeout = timeout;
  // Checked before and after, since the port may change hands in between; an idle connection may
  // end at its previous owner.
  client_->close_idle_connections();
  TRY(check_listener());
  const auto response = client_->call(request);
  TRY(check_listener());
  if (!response && response.error().code == Code::kTimeout) {
    return Error{Code::kTimeout, fmt::format("slurmlet does not answer on {} in time; see "
                                             "systemctl status slurmlet",
                                             address_)};
  }
  if (!response) {
    return nobody();
  }
  if (response->status == 200) {
    if (auto status = read_daemon_status(response->body)) {
      return status;
    }
  }
  return Error{
      Code::kInvalid,
      fmt::format(
          "another program answers on {} (HTTP {}); set endpoint.healthzPort to a free port",
          address_, response->status)};
}

void DaemonClient::pause(Duration how_long) {
  (void)client_->wait(std::chrono::steady_clock::now() + how_long, {});
}

}  // namespace slurmlet::status
