#include "cli/leave_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/file.h"
#include "base/log.h"
#include "check/service_unit.h"
#include "cli/join_command.h"
#include "cli/print.h"
#include "config/credentials.h"
#include "credentials/bootstrap.h"
#include "credentials/own_credentials.h"
#include "daemon/node_preview.h"
#include "daemon/state_dir.h"
#include "kube/rest_api.h"
#include "node/claim.h"
#include "node/lease_holder.h"

namespace slurmlet::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr Duration kSlurmWait = seconds{6};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

std::string job_text(const node::LocalJobs& jobs) {
  std::string ids;
  for (const auto id : jobs.job_ids) {
    ids += fmt::format("{}{}", ids.empty() ? "" : ", ", id);
  }
  return fmt::format("{} of Slurm run{} here ({}) and {} not touched; nothing is drained",
                     jobs.jobs == 1 ? "1 job" : fmt::format("{} jobs", jobs.jobs),
                     jobs.jobs == 1 ? "s" : "", ids, jobs.jobs == 1 ? "is" : "are");
}

// A join's own, where its configuration is gone already.
config::Settings with_own_kubeconfig(config::Settings settings) {
  if (settings.kubernetes.kubeconfig.empty() && settings.kubernetes.server.empty()) {
    settings.kubernetes.kubeconfig = fs::path{settings.state_dir} / "kubeconfig";
  }
  return settings;
}

class Leave {
 public:
  // Reads all that is needed before the service ends, and with it the credentials that systemd
  // hands it.
  Leave(const config::Settings& settings, const config::ParsedCommandLine& command)
      : settings_(with_own_kubeconfig(settings)),
        command_(command),
        dry_run_(!command.options.at("dry-run").empty()),
        access_(credentials::ApiAccess::open(settings_, clock_)),
        preview_(daemon::preview_node(settings_, {.limit = kSlurmWait, .route = ""})) {}

  int run() {
    report_jobs();
    if (const Status stopped = stop_service(); !stopped) {
      return fail(stopped.error(), kFailed);
    }
    delete_node();
    remove_files();
    report_files_of_the_site();
    return is_complete_ ? 0 : kFailed;
  }

 private:
  void report_jobs() const {
    if (!preview_) {
      return;
    }
    const node::HostFacts& facts = preview_->facts;
    if (facts.jobs && facts.jobs->jobs > 0) {
      say(job_text(*facts.jobs));
    } else if (!facts.jobs && facts.slurmd.pid != 0) {
      say("whether jobs of Slurm run here is not known; they are not touched, nothing is drained");
    }
  }

  Status stop_service() const {
    if (dry_run_) {
      say("would stop and disable slurmlet.service");
      return {};
    }
    // The socket would start the service again.
    TRY(check::systemctl({"disable", "--quiet", "--now", "slurmlet.socket", "slurmlet.service"}));
    say("stopped and disabled slurmlet.service");
    // A daemon of another unit would register the Node again. Without the file none has run.
    if (is_there(fs::path{settings_.state_dir} / "lock")) {
      TRY(daemon::lock_state_directory(settings_.state_dir));
    }
    return {};
  }

  void delete_node() {
    if (!preview_) {
      return left("no Node is deleted: " + preview_.error().message);
    }
    const std::string& name = preview_->desired.name;
    if (!access_) {
      const std::string text = fmt::format(
          "Node {} is not looked up without a credential of it: {}", name, access_.error().message);
      return has_credential() ? left(with_advice(text)) : say(text);
    }
    const auto client = access_->connect();
    if (!client) {
      return left(with_advice(client.error().message));
    }
    const kube::CallOptions calls{};
    const auto verdict =
        node_verdict(read_node(**client, calls, settings_, *access_, *preview_), preview_->desired);
    if (verdict.delete_uid.empty()) {
      return verdict.is_certain ? say(verdict.why_not) : left(with_advice(verdict.why_not));
    }
    if (dry_run_) {
      return say(fmt::format(
          "would delete Node {} and with it its Lease, if its own credential may", name));
    }
    const Status gone = kube::RestSiteApi{**client, calls}.remove(name, verdict.delete_uid);
    if (gone || gone.error().code == Code::kNotFound) {
      return say(fmt::format("deleted Node {}, and with it its Lease", name));
    }
    left(
        with_advice(gone.error().code == Code::kDenied
                        ? fmt::format("Node {} is left: its own credential may not delete it", name)
                        : fmt::format("Node {} is left: {}", name, gone.error().reason())));
  }

  void remove_files() {
    for (const auto& path : own_credential_files(settings_, command_)) {
      if (!is_there(path)) {
        continue;
      }
      if (dry_run_) {
        say("would remove " + path.string());
        continue;
      }
      std::error_code problem;
      if (fs::remove(path, problem)) {
        say("removed " + path.string());
      } else {
        left(fmt::format("{} is left: {}", path.string(), problem.message()));
      }
    }
    const fs::path directory = fs::path{settings_.state_dir} / "pki";
    if (!dry_run_ && settings_.kubernetes.cert_dir == directory) {
      std::error_code ignored;
      fs::remove(directory, ignored);  // where it is empty
    }
  }

  // With them the service would join again.
  void report_files_of_the_site() const {
    const auto& kubernetes = settings_.kubernetes;
    std::vector<std::string> paths{kubernetes.kubeconfig, kubernetes.bootstrap_kubeconfig,
                                   kubernetes.bootstrap_token_file, kubernetes.token_file,
                                   kubernetes.key_file};
    for (const auto& one : config::credential_names()) {
      paths.push_back("/etc/credstore/" + std::string{one.name});
    }
    const auto removed = own_credential_files(settings_, command_);
    for (const auto& path : paths) {
      const bool is_ours = std::find(removed.begin(), removed.end(), path) != removed.end();
      if (!is_ours && !path.empty() && !path.starts_with("/run/credentials/") && is_there(path)) {
        say(path + " is not slurmlet's own, and stays");
      }
    }
    if (const std::string detached = "/run/slurmlet/detached"; is_there(detached)) {
      say(detached + " stays, and keeps slurmd stopped until this machine boots again");
    }
  }

  bool has_credential() const {
    const auto& kubernetes = settings_.kubernetes;
    return kubernetes.kubeconfig.empty() || is_there(kubernetes.kubeconfig);
  }
  std::string with_advice(const std::string& text) const {
    return fmt::format("{}\n  -> kubectl delete node {}", text, preview_->desired.name);
  }
  void left(const std::string& text) {
    is_complete_ = false;
    say(text);
  }

  const config::Settings settings_;
  const config::ParsedCommandLine& command_;
  const bool dry_run_;
  const SystemClock clock_{};
  const Result<credentials::ApiAccess> access_;
  const Result<daemon::NodePreview> preview_;
  bool is_complete_ = true;
};

}  // namespace

std::vector<fs::path> own_credential_files(const config::Settings& settings,
                                           const config::ParsedCommandLine& command) {
  std::vector<fs::path> out;
  const fs::path directory = settings.kubernetes.cert_dir;
  auto names = list_directory(directory);
  if (names) {
    std::sort(names->begin(), names->end());
    for (const auto& name : *names) {
      if (name.starts_with(credentials::kClientStoreName) ||
          name.starts_with(credentials::kServingStoreName)) {
        out.push_back(directory / name);
      }
    }
  }
  // Elsewhere it is the site's, even where a bootstrap wrote it: it names the files above.
  const std::string kubeconfig = fs::path{settings.state_dir} / "kubeconfig";
  out.emplace_back(kubeconfig);
  out.emplace_back(credentials::replaced_kubeconfig(kubeconfig));
  const JoinFiles join = join_files(command);
  // Of a join that was killed.
  for (const auto& name : list_directory(join.token.parent_path()).value_or({})) {
    if (unfinished_target(name) == join.token.filename().string()) {
      out.push_back(join.token.parent_path() / name);
    }
  }
  if (is_there(join.config)) {
    out.push_back(join.token);
    out.push_back(join.config);
  }
  return out;
}

NodeVerdict node_verdict(const NodeSeen& seen, const node::DesiredNode& wanted) {
  if (seen.problem) {
    return {"", fmt::format("Node {} cannot be read: {}", seen.name, seen.problem->reason()),
            false};
  }
  if (!seen.node) {
    return {"", fmt::format("there is no Node {}", seen.name)};
  }
  if (const auto foreign = node::foreign_claim(*seen.node, wanted)) {
    return {"", *foreign};
  }
  if (seen.lease && node::is_foreign_holder(seen.lease->holder_identity, seen.holder_identity)) {
    return {"", fmt::format("Node {} belongs to another machine: its Lease is held by {}",
                            seen.name, seen.lease->holder_identity)};
  }
  if (seen.node->deleting) {
    return {"", fmt::format("Node {} is being deleted", seen.name)};
  }
  return {seen.node->uid, ""};
}

int run_leave(const config::Settings& settings, const config::ParsedCommandLine& command) {
  if (command.options.at("dry-run").empty() && ::geteuid() != 0) {
    return fail({Code::kDenied, "slurmlet leave must be run by root"}, kFailed);
  }
  log::set_level(log::Level::kError);  // the output says it all
  return Leave{settings, command}.run();
}

}  // namespace slurmlet::cli
