#pragma once

// `slurmlet join HOST:PORT --token TOKEN --discovery-token-ca-cert-hash sha256:…`: what
// `kubeadm token create --print-join-command` prints, with slurmlet in place of kubeadm. Verifies
// cluster and token, writes the configuration and the token where the service reads them, enables
// and starts the service, and waits until the Node is registered. Needs root; may be repeated.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "config/load.h"

namespace slurmlet::cli {

// Where a join writes the configuration and the token.
struct JoinFiles {
  std::filesystem::path config, token;
};
JoinFiles join_files(const config::ParsedCommandLine& command);

// What a join writes.
struct JoinPlan {
  std::string server;  // "https://HOST:PORT"
  std::string token;   // a bootstrap token
  std::string hashes;  // as kubernetes.caCertHashes
  std::string node;    // "" = the default
  JoinFiles files;
};

// From the command line; kInvalid with a line for each problem. Pure.
Result<JoinPlan> join_plan(const config::ParsedCommandLine& command);
// The content of files.config. Pure.
std::string join_config(const JoinPlan& plan);

// Exit code: 0 registered; 1 it could not be done, or not within --timeout; 2 a bad command line or
// configuration.
int run_join(const config::ParsedCommandLine& command);

}  // namespace slurmlet::cli
