#include "daemon/rest_access.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "host/listening.h"
#include "http/proxy_choice.h"
#include "tls/client_identity.h"

namespace slurmlet::daemon {
namespace {

constexpr std::size_t kMaxCaBytes = std::size_t{1} << 20;
constexpr std::string_view kSocketPrefix = "unix:";

// "localhost" is two addresses, of which a connection takes the one that answers: whoever listens
// at the other one must not get the token.
http::Endpoint endpoint_of(const std::string& url) {
  constexpr std::string_view kLocalhost = "http://localhost";
  http::Endpoint endpoint;
  endpoint.user_agent = "slurmlet/" SLURMLET_VERSION;
  if (url.starts_with(kSocketPrefix)) {
    endpoint.url = "http://localhost";
    endpoint.unix_socket = url.substr(kSocketPrefix.size());
  } else if (url.starts_with(kLocalhost)) {
    endpoint.url = "http://127.0.0.1" + url.substr(kLocalhost.size());
  } else {
    endpoint.url = url;
  }
  return endpoint;
}

// "" for a uid without a name. Asks the name service, which may hang.
std::string own_user() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? "" : found->pw_name;
}

// What distributions and systemd give to users of the system, who run no jobs
// (https://systemd.io/UIDS-GIDS/).
constexpr uid_t kFirstUser = 1000;

bool is_trusted(uid_t uid, std::optional<uid_t> server_user) {
  return uid == 0 || (server_user ? uid == *server_user : uid < kFirstUser || uid == ::geteuid());
}

// By name or number. Asks the name service, which may hang.
Result<uid_t> uid_of(const std::string& user) {
  if (const auto number = parse_int<uid_t>(user)) {
    return *number;
  }
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  const int error = ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (error != 0) {
    return errno_error(error, "look up user");
  }
  return found == nullptr ? Result<uid_t>{Error{Code::kNotFound, "there is no such user"}}
                          : found->pw_uid;
}

// Who listens at a URL of plain http.
Result<uid_t> listener_of(const std::string& url, const std::string& proc_root) {
  const http::HostPort server = http::server_of(url);
  const auto socket = host::listening_socket(
      proc_root, parse_int<int>(server.port).value_or(0),
      server.host == "::1" ? host::Reach::kLoopback6 : host::Reach::kLoopback);
  if (!socket) {
    return Error{Code::kUnavailable, "nothing listens there"};
  }
  return socket->uid;
}

Status judge_listener(uid_t holder, std::optional<uid_t> server_user) {
  if (is_trusted(holder, server_user)) {
    return {};
  }
  return Error{Code::kDenied,
               fmt::format("not trusted: the port is held by uid {}, which is not {}", holder,
                           server_user ? "slurmrestd's user" : "a system user (uid below 1000)")};
}

}  // namespace

Status check_rest_listener(const std::string& url, std::optional<uid_t> server_user,
                           const std::string& proc_root) {
  if (!slurm::RestServer{url}.is_plain()) {
    return {};
  }
  return judge_listener(TRY(listener_of(url, proc_root)), server_user);
}

RestAccess::RestAccess(const config::SlurmSettings& settings, std::string url, const Clock& clock)
    : url_(std::move(url)), token_path_(settings.jwt_file) {
  if (url_.starts_with("https://")) {
    ca_file_ = settings.rest_ca_file;
  }
  if (!token_path_.empty()) {
    token_file_.emplace(token_path_, clock);
  } else if (!url_.starts_with(kSocketPrefix)) {
    token_ = slurm::token_of_environment();
  }
}

Status RestAccess::refresh() {
  if (ca_file_.empty() && credentials_) {
    return {};
  }
  const Status read = read_ca();
  if (!read && credentials_) {
    if (read.error().message != std::exchange(refused_, read.error().message)) {
      log::warning("slurmrestd's CA: " + read.error().message + "; the old one stays in use");
    }
    return {};
  }
  if (read) {
    refused_.clear();
  }
  return read;
}

Status RestAccess::read_ca() {
  tls::PemSources pem;
  if (!ca_file_.empty()) {
    auto file =
        TRY(in_time(ca_look_, [path = ca_file_, before = credentials_ ? ca_stamp_ : std::nullopt] {
          return read_if_changed(path, before, kMaxCaBytes);
        }));
    if (!file) {
      return {};
    }
    pem.ca = std::move(file->content);
    pem.ca_name = ca_file_;
    ca_stamp_ = file->stamp;
  }
  http::Credentials fresh{endpoint_of(url_), nullptr, {}};
  if (url_.starts_with("https://")) {
    fresh.identity = TRY(tls::ClientIdentity::make(pem));
  }
  credentials_ = std::make_shared<const http::Credentials>(std::move(fresh));
  return {};
}

slurm::RestToken RestAccess::token() {
  if (!token_file_) {
    return {token_, slurm::kTokenVariable, {}};
  }
  slurm::RestToken token{token_file_->token(), token_path_, {}};
  if (token.text.empty()) {
    token.problem = token_file_->last_error();
  }
  return token;
}

slurm::RestSettings rest_connection(const config::SlurmSettings& settings, const std::string& url,
                                    http::Client& first, const Clock& clock) {
  const auto access = std::make_shared<RestAccess>(settings, url, clock);
  slurm::RestSettings rest;
  rest.server.url = url;
  rest.user = settings.rest_user;
  rest.own_user = [look = std::make_shared<SideCall<Result<std::string>>>(),
                   known = Result<std::string>{Error{}}]() mutable {
    if (!known) {
      known = in_time(*look, [] { return own_user(); });
    }
    return known ? *known : "";
  };
  rest.timeout = settings.command_timeout;
  rest.make_client = [access, &first]() -> Result<std::unique_ptr<http::Client>> {
    TRY(access->refresh());
    return http::make_sibling(first, [access] {
      (void)access->refresh();
      return access->credentials();
    });
  };
  rest.read_token = [access] { return access->token(); };
  rest.check_listener = [server = rest.server, user = settings.rest_server_user,
                         look = std::make_shared<SideCall<Result<uid_t>>>(),
                         known = std::optional<uid_t>{}]() mutable -> Status {
    if (!server.is_plain()) {
      return {};
    }
    // Looked at once: while the user is looked up, who held the port may have left it.
    const uid_t holder = TRY(listener_of(server.url, "/proc"));
    // Its uid, once known, stays so while it is right: the name service may be away.
    if (!user.empty() && holder != 0 && known != holder) {
      const auto found = in_time(*look, [user] { return uid_of(user); });
      if (!found && !known) {
        return Error{Code::kUnavailable, "the user " + user + " of its port cannot be looked up: " +
                                             found.error().message};
      }
      known = found ? *found : known;
    }
    return judge_listener(holder, known);
  };
  return rest;
}

}  // namespace slurmlet::daemon
