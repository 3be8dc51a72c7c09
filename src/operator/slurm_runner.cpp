#include "operator/slurm_runner.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "slurm/sources/rest_dump.h"
#include "slurm/sources/rest_token.h"
#include "tls/client_identity.h"

namespace slurmlet::op {
namespace {

class TokenRunner final : public Command {
 public:
  TokenRunner(const std::string& path, const Clock& clock) : token_(path, clock) {}

  Status start(const CommandSpec& spec, SteadyTime now) override {
    CommandSpec with_token = spec;
    const Status added = add_token(token_, with_token);
    return added ? Command::start(with_token, now) : added;
  }

 private:
  TokenFile token_;
};

constexpr std::size_t kMaxCaBytes = std::size_t{1} << 20;
constexpr std::string_view kSocketPrefix = "unix:";

http::Endpoint endpoint_of(const std::string& url) {
  http::Endpoint endpoint;
  endpoint.user_agent = "slurmlet/" SLURMLET_VERSION;
  endpoint.url = url;
  if (url.starts_with(kSocketPrefix)) {
    endpoint.url = "http://localhost";
    endpoint.unix_socket = url.substr(kSocketPrefix.size());
  }
  return endpoint;
}

// "" = the uid has no name. NSS may hang.
std::string own_user() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? "" : found->pw_name;
}

}  // namespace

Status add_token(TokenFile& file, CommandSpec& spec) {
  const std::string text = file.token();
  const auto token = slurm::bare_token(text);
  if (token.empty()) {
    return file.last_error().value_or(Error{Code::kNotFound, "slurmJwtFile holds no token"});
  }
  spec.extra_environment.push_back(fmt::format("{}={}", slurm::kTokenVariable, token));
  return {};
}

std::unique_ptr<CommandRunner> slurm_runner(const std::string& token_file, const Clock& clock) {
  if (token_file.empty()) {
    return std::make_unique<Command>();
  }
  return std::make_unique<TokenRunner>(token_file, clock);
}

slurm::SlurmIdentity slurm_identity(const std::string& token_file, const Clock& clock) {
  if (token_file.empty()) {
    const std::uint32_t uid = ::geteuid();
    const std::string name = own_user();
    return {name.empty() ? std::to_string(uid) : name, uid};
  }
  TokenFile file{token_file, clock};
  const std::string text = file.token();
  const auto claims = slurm::token_claims(slurm::bare_token(text));
  return {claims ? claims->user : "", std::nullopt};
}

RestAccess::RestAccess(const Options& options, const Clock& clock)
    : url_(options.slurm_rest_url), token_path_(options.slurm_jwt_file) {
  if (url_.starts_with("https://")) {
    ca_file_ = options.slurm_rest_ca_file;
  }
  if (!token_path_.empty()) {
    token_file_.emplace(token_path_, clock);
  }
}

Status RestAccess::refresh() {
  if (ca_file_.empty() && credentials_) {
    return {};
  }
  const Status read = read_ca();
  if (!read && credentials_) {
    if (read.error().message != std::exchange(rejected_, read.error().message)) {
      log::warning("slurmrestd's CA: " + read.error().message + "; the old one stays in use");
    }
    return {};
  }
  if (read) {
    rejected_.clear();
  }
  return read;
}

Status RestAccess::read_ca() {
  tls::PemSources pem;
  if (!ca_file_.empty()) {
    auto file =
        TRY(in_time(ca_read_, [path = ca_file_, before = credentials_ ? ca_stamp_ : std::nullopt] {
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
    return {};
  }
  slurm::RestToken token{token_file_->token(), token_path_, {}};
  if (token.text.empty()) {
    token.problem = token_file_->last_error();
  }
  return token;
}

slurm::RestSettings rest_connection(const Options& options, http::Client& first,
                                    const Clock& clock) {
  const auto access = std::make_shared<RestAccess>(options, clock);
  slurm::RestSettings rest;
  rest.url = options.slurm_rest_url;
  rest.own_user = [lookup = std::make_shared<DetachedTask<Result<std::string>>>(),
                   known = Result<std::string>{Error{}}]() mutable {
    if (!known) {
      known = in_time(*lookup, [] { return own_user(); });
    }
    return known ? *known : "";
  };
  rest.timeout = options.slurm_command_timeout;
  rest.make_client = [access, &first]() -> Result<std::unique_ptr<http::Client>> {
    TRY(access->refresh());
    return http::make_sibling(first, [access] {
      (void)access->refresh();
      return access->credentials();
    });
  };
  rest.read_token = [access] { return access->token(); };
  return rest;
}

std::unique_ptr<slurm::DumpSource> dump_source(const Options& options, http::Client& first,
                                               const Clock& clock) {
  if (options.slurm_source == Options::Source::kCli) {
    return std::make_unique<slurm::ScontrolDump>(slurm_client(options),
                                                 slurm_runner(options.slurm_jwt_file, clock));
  }
  return std::make_unique<slurm::RestDump>(rest_connection(options, first, clock));
}

slurm::ClientSettings slurm_client(const Options& options) {
  return {options.slurm_conf, options.slurm_bin_dir, options.slurm_command_timeout};
}

}  // namespace slurmlet::op
