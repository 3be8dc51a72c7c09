#pragma once

// Whether Slurm shows everything to a user: with PrivateData (slurm.conf(5)) squeue leaves out the
// jobs of others and scontrol nodes, without a word, but for root, SlurmUser and who has
// AdminLevel Operator or Administrator (sacctmgr(1)). An empty answer looks like a filtered
// one otherwise. Pure.

#include <cstdint>
#include <optional>
#include <string>

#include "base/command.h"
#include "base/result.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {

// Who a command acts as in Slurm.
struct SlurmIdentity {
  std::string name;                  // "" = not known
  std::optional<std::uint32_t> uid;  // of this process, where no token says who it is
};

// Of `scontrol show config`.
struct PrivacyConfig {
  std::string slurm_user;  // name
  std::uint32_t slurm_uid = 0;
  bool hides_jobs = false, hides_nodes = false;
};

CommandSpec config_query(const ClientSettings& settings);
Result<PrivacyConfig> read_privacy(const CommandOutput& output);

// Whether all is shown to `self` by this alone; else its AdminLevel decides.
bool shows_all(const PrivacyConfig& config, const SlurmIdentity& self);

CommandSpec admin_level_query(const ClientSettings& settings, const std::string& user);
bool is_operator(const CommandOutput& output);

// What is hidden from which user, and the fix.
std::string hidden_text(const PrivacyConfig& config, const SlurmIdentity& self);

}  // namespace slurmlet::slurm
