#include "operator/slurm_runner.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "daemon/rest_access.h"
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
    const passwd* user = ::getpwuid(uid);
    return {user == nullptr ? std::to_string(uid) : user->pw_name, uid};
  }
  TokenFile file{token_file, clock};
  const std::string text = file.token();
  const auto parts = split(slurm::bare_token(text), '.');
  const auto claims = parts.size() == 3 ? tls::base64url_decode(parts[1]) : std::nullopt;
  const auto value = nlohmann::json::parse(claims.value_or(""), nullptr, false);
  const auto name = value.is_object() ? value.find("sun") : value.end();
  return {name != value.end() && name->is_string() ? name->get<std::string>() : "", std::nullopt};
}

std::unique_ptr<slurm::DumpSource> dump_source(const Options& options, http::Client& first,
                                               const Clock& clock) {
  if (options.slurm_source == Options::Source::kCli) {
    return std::make_unique<slurm::ScontrolDump>(slurm_client(options),
                                                 slurm_runner(options.slurm_jwt_file, clock));
  }
  config::SlurmSettings settings;
  settings.rest_ca_file = options.slurm_rest_ca_file;
  settings.rest_server_user = options.slurm_rest_server_user;
  settings.jwt_file = options.slurm_jwt_file;
  settings.command_timeout = options.slurm_command_timeout;
  auto rest = daemon::rest_connection(settings, options.slurm_rest_url, first, clock);
  rest.server.of_operator = true;
  return std::make_unique<slurm::RestDump>(std::move(rest));
}

slurm::SinfoSettings slurm_client(const Options& options) {
  return {options.slurm_conf, options.slurm_bin_dir, options.slurm_command_timeout};
}

}  // namespace slurmlet::op
