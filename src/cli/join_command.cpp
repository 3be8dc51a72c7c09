#include "cli/join_command.h"

#include <fmt/format.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <regex>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "check/service_unit.h"
#include "cli/print.h"
#include "cli/status_command.h"
#include "config/sources.h"
#include "credentials/bootstrap.h"
#include "kube/cluster_info.h"
#include "kube/kubeconfig.h"
#include "kube/request_counter.h"

namespace slurmlet::cli {
namespace {

constexpr const char* kUnit = "slurmlet.service";
constexpr const char* kGroup = "slurmlet";  // of the unit's user
constexpr mode_t kConfigMode = 0644;
constexpr mode_t kTokenMode = 0640;
std::string print_join() { return std::string{kube::kNewToken} + " --print-join-command"; }

// A file of this process alone, by which the settings can name a secret that no disk has.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content)
      : fd_(::memfd_create("slurmlet-join", MFD_CLOEXEC)) {
    good_ = fd_.get() >= 0 && ::write(fd_.get(), content.data(), content.size()) ==
                                  static_cast<ssize_t>(content.size());
  }
  bool good() const { return good_; }
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_.get()); }

 private:
  UniqueFd fd_;
  bool good_ = false;
};

// The configuration as it will be, but for the token's place.
Result<config::Settings> settings_with(config::ParsedCommandLine command, const JoinPlan& plan,
                                       const std::string& token_file) {
  command.values["kubernetes.server"] = plan.server;
  command.values["kubernetes.bootstrapTokenFile"] = token_file;
  command.values["kubernetes.caCertHashes"] = plan.hashes;
  return config::load(command, config::process_environment(), config::read_whole_file(),
                      config::read_directory());
}

Status verify(const config::Settings& settings) {
  kube::RequestCounter requests;
  const SystemClock clock;
  const Status accepted = credentials::probe_bootstrap(settings, -1, clock, requests);
  if (!accepted && accepted.error().code == Code::kDenied) {
    return Error{
        Code::kDenied,
        accepted.error().message +
            "\nthis token may not request a node's certificate; print another: " + print_join()};
  }
  return accepted;
}

// For the unit's user, by its group.
Status write_secret(const std::filesystem::path& path, const std::string& text) {
  const group* found = ::getgrnam(kGroup);
  if (found == nullptr) {
    return Error{Code::kNotFound,
                 fmt::format("there is no group {}: is the package installed?", kGroup)};
  }
  return write_file_atomic(path, text, kTokenMode, FileOwner{0, found->gr_gid});
}

Status write_all(const JoinPlan& plan) {
  TRY(write_secret(plan.files.token, plan.token + "\n"));
  return write_file_atomic(plan.files.config, join_config(plan), kConfigMode);
}

}  // namespace

JoinFiles join_files(const config::ParsedCommandLine& command) {
  return {config::drop_in_directory(command) + "/20-join.yaml",
          std::filesystem::path{config::config_file(command)}.replace_filename("bootstrap-token")};
}

Result<JoinPlan> join_plan(const config::ParsedCommandLine& command) {
  static const std::regex kToken{"[a-z0-9]{6}\\.[a-z0-9]{16}"};
  std::vector<std::string> problems;
  JoinPlan plan;
  const std::string address =
      command.argument.starts_with("https://") ? command.argument.substr(8) : command.argument;
  if (address.empty() || address.find('/') != std::string::npos ||
      address.rfind(':') == std::string::npos) {
    problems.push_back(fmt::format("\"{}\" is no HOST:PORT of an API server", command.argument));
  }
  plan.server = "https://" + address;
  plan.token = command.options.at("token");
  if (!std::regex_match(plan.token, kToken)) {
    problems.push_back(
        "--token must be a bootstrap token, ID.SECRET of 6 and 16 letters and digits; " +
        print_join() + " prints one");
  }
  auto values = command.values;  // "" = not given
  plan.hashes = values["kubernetes.caCertHashes"];
  if (plan.hashes.empty()) {
    problems.push_back(
        "--discovery-token-ca-cert-hash sha256:… is missing: without it any server with that "
        "token would be believed; " +
        print_join() + " prints it");
  }
  plan.node = values["node.name"];
  for (const auto& [key, value] : command.values) {
    if (key != "kubernetes.caCertHashes" && key != "node.name") {
      problems.push_back(fmt::format(
          "{}: join does not write this setting; set it in /etc/slurmlet/config.d/10-site.yaml",
          key));
    }
  }
  if (const auto limit = wait_limit(command); !limit) {
    problems.push_back(limit.error().message);
  }
  if (!problems.empty()) {
    return Error{Code::kInvalid, join(problems, "\n")};
  }
  plan.files = join_files(command);
  return plan;
}

std::string join_config(const JoinPlan& plan) {
  std::string out = fmt::format(
      "# Written by slurmlet join; another join replaces it.\n"
      "apiVersion: slurmlet.io/v1alpha1\n"
      "kind: SlurmletConfiguration\n"
      "kubernetes:\n"
      "  server: {}\n"
      "  bootstrapTokenFile: {}\n"
      "  caCertHashes: \"{}\"\n",
      plan.server, plan.files.token.string(), plan.hashes);
  if (!plan.node.empty()) {
    out += fmt::format("node:\n  name: {}\n", plan.node);
  }
  return out;
}

int run_join(const config::ParsedCommandLine& command) {
  const auto plan = join_plan(command);
  if (!plan) {
    return fail(plan.error(), kBadConfiguration);
  }
  const MemoryFile token{plan->token};
  if (!token.good()) {
    return fail({Code::kInternal, "no memory for the token"}, kFailed);
  }
  const auto settings = settings_with(command, *plan, token.path());
  if (!settings) {
    return fail(settings.error(), kBadConfiguration);
  }
  if (const Status verified = verify(*settings); !verified) {
    return fail(verified.error(), kFailed);
  }
  // The service would go on with it, and never ask for another.
  const auto own = kube::load_kubeconfig(settings->kubernetes.kubeconfig);
  if (own && own->server != plan->server) {
    return fail({Code::kConflict, fmt::format("{} has a credential of {}; run slurmlet leave first",
                                              settings->kubernetes.kubeconfig, own->server)},
                kFailed);
  }
  print(plan->server + " is the cluster with that CA, and accepts the token\n");
  if (!command.options.at("dry-run").empty()) {
    print(
        fmt::format("would write the token to {} (root:{}, 0640), to {}:\n{}"
                    "would run: systemctl enable {}; systemctl restart {}\n",
                    plan->files.token.string(), kGroup, plan->files.config.string(),
                    join_config(*plan), kUnit, kUnit));
    return 0;
  }
  if (::geteuid() != 0) {
    return fail({Code::kDenied, "slurmlet join must be run by root"}, kFailed);
  }
  if (const Status written = write_all(*plan); !written) {
    return fail(written.error(), kFailed);
  }
  if (const Status started = check::enable_and_restart(kUnit); !started) {
    return fail(started.error(), kFailed);
  }
  return run_wait_registered(*settings, command);
}

}  // namespace slurmlet::cli
