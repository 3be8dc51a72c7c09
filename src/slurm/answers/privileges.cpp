#include "slurm/answers/privileges.h"

#include <fmt/format.h>

#include "base/text.h"
#include "slurm/answers/values.h"

namespace slurmlet::slurm {
namespace {

// The value of "Key   = value"; nothing where the key is not there.
std::optional<std::string> config_value(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    const auto equals = line.find('=');
    if (equals != std::string_view::npos && trim(line.substr(0, equals)) == key) {
      return std::string{trim(line.substr(equals + 1))};
    }
  }
  return std::nullopt;
}

}  // namespace

CommandSpec config_query(const ClientSettings& settings) {
  return slurm_command(settings, {"scontrol", "--local", "show", "config"});
}

Result<PrivacyConfig> read_privacy(const CommandOutput& output) {
  if (!output.succeeded()) {
    const auto known = known_failure(output.err);
    return Error{Code::kUnavailable,
                 known ? known->detail : "scontrol show config failed: " + excerpt(output.err)};
  }
  const auto user = config_value(output.out, "SlurmUser");  // "slurm(64030)"
  const auto hidden = config_value(output.out, "PrivateData");
  const auto open = user ? user->rfind('(') : std::string::npos;
  const auto uid = open == std::string::npos
                       ? std::nullopt
                       : parse_int<std::uint32_t>(
                             std::string_view{*user}.substr(open + 1, user->size() - open - 2));
  if (!hidden || !uid) {
    return Error{Code::kInvalid,
                 "scontrol show config names no PrivateData, or no SlurmUser with its uid"};
  }
  PrivacyConfig out{user->substr(0, open), *uid};
  for (const std::string_view word : split(*hidden, ',')) {
    const std::string what = to_lower(std::string{trim(word)});
    out.hides_jobs = out.hides_jobs || what == "jobs";
    out.hides_nodes = out.hides_nodes || what == "nodes";
  }
  return out;
}

bool shows_all(const PrivacyConfig& config, const SlurmIdentity& self) {
  const bool is_slurm_user =
      self.uid ? *self.uid == 0 || *self.uid == config.slurm_uid
               : self.name == "root" || (!self.name.empty() && self.name == config.slurm_user);
  return is_slurm_user || (!config.hides_jobs && !config.hides_nodes);
}

CommandSpec admin_level_query(const ClientSettings& settings, const std::string& user) {
  return slurm_command(settings, {"sacctmgr", "--noheader", "--parsable2", "show", "user",
                                  "name=" + user, "format=AdminLevel"});
}

bool is_operator(const CommandOutput& output) {
  const std::string_view level = trim(output.out);
  return output.succeeded() && (level == "Operator" || level == "Administrator");
}

std::string hidden_text(const PrivacyConfig& config, const SlurmIdentity& self) {
  const char* const what = config.hides_jobs && config.hides_nodes ? "jobs,nodes"
                           : config.hides_jobs                     ? "jobs"
                                                                   : "nodes";
  return fmt::format(
      "Slurm hides what is not its own from user {} (PrivateData={}), so no answer shows that a "
      "node has no job; run slurmlet-operator as SlurmUser {}, or give the user "
      "AdminLevel=Administrator",
      self.name.empty() ? "of its token" : self.name, what, config.slurm_user);
}

}  // namespace slurmlet::slurm
