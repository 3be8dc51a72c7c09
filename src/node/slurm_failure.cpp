#include "node/slurm_failure.h"

#include <cstddef>
#include <iterator>

namespace slurmlet::node {
namespace {

constexpr FailureKind kKinds[] = {
    {SlurmFailure::kControllerUnreachable, "controller unreachable", "slurmctld does not answer",
     "ControllerUnreachable", "{slurmctld} does not answer",
     "check that it is running and reachable from this node (scontrol ping)"},
    {SlurmFailure::kTimeout, "timeout", "slurmctld did not answer in time", "ControllerTimeout",
     "{slurmctld} did not answer in time", "check its load (sdiag) and the network"},
    {SlurmFailure::kMungeUnavailable, "munge unavailable", "munge is not running",
     "MungeUnavailable", "munge is not running on {host}, so Slurm cannot be queried",
     "start it there (systemctl start munge)", kEndsHere},
    {SlurmFailure::kAuthenticationRefused, "authentication refused",
     "slurmctld rejects the credentials", "AuthenticationRefused",
     "slurmctld rejects the credentials of {host}",
     "install the cluster's key there (/etc/munge/munge.key, or /etc/slurm/slurm.key with "
     "auth/slurm), set the clock and restart munge"},
    {SlurmFailure::kClockSkew, "clock skew", "the clock differs from slurmctld's", "ClockSkew",
     "the clocks of {host} and of slurmctld differ too much for munge",
     "correct them (chronyc tracking, timedatectl)"},
    {SlurmFailure::kTokenRefused, "token refused", "Slurm rejects the token", "TokenRefused",
     "Slurm rejects the token (JWT)",
     "write a new one to slurmlet-operator's slurmJwtFile (scontrol token username=USER "
     "lifespan=SECONDS)"},
    {SlurmFailure::kPermissionDenied, "permission denied",
     "slurmlet is not permitted to read this node", "PermissionDenied",
     "slurmlet is not permitted to read this node in Slurm",
     "with PrivateData=nodes or partitions, give its user AdminLevel=Operator, or run slurmlet as "
     "root"},
    {SlurmFailure::kNotInSlurm, "not in Slurm", "slurmctld has no such node", "NotInSlurm",
     "this node is not in Slurm",
     "check NodeName and partitions in slurm.conf, or set slurm.nodeName", kEndsHere},
    {SlurmFailure::kBadConfiguration, "bad configuration", "slurm.conf cannot be used",
     "SlurmConfInvalid", "Slurm's configuration on this node cannot be used",
     "check slurm.conf (SLURM_CONF, or the setting slurm.conf)", kEndsHere},
    {SlurmFailure::kCommandMissing, "command missing", "scontrol cannot be run",
     "SlurmCommandMissing", "scontrol cannot be run",
     "install Slurm's client commands, set slurm.binDir, or run slurmlet-operator", kEndsHere},
    {SlurmFailure::kInvalidResponse, "invalid_response", "the answer cannot be parsed",
     "AnswerNotUnderstood", "the answer about this node cannot be parsed",
     "look at this node's line of scontrol -a -d -o show node, and report it with Slurm's version"},
    {SlurmFailure::kRateLimited, "rate limited", "slurmctld is rate-limiting queries",
     "ControllerRateLimited", "slurmctld is rejecting queries for now",
     "the limit (SlurmctldParameters=rl_enable) applies per user across all nodes: run "
     "slurmlet-operator, raise slurm.pollInterval, or run slurmlet as root, which is exempt"},
    {SlurmFailure::kRestUnavailable, "slurmrestd unavailable", "slurmrestd cannot be queried",
     "RestUnavailable", "slurmrestd cannot be queried",
     "check that it is running, and slurmRestURL"},
    {SlurmFailure::kRecordUnavailable, "record unavailable",
     "there is no usable record from slurmlet-operator", "RecordUnavailable",
     "there is no usable record from slurmlet-operator",
     "check that slurmlet-operator is running for this cluster, or set slurm.source to auto",
     kEndsHere},
    {SlurmFailure::kNodeUnknown, "node unknown", "its Slurm NodeName is not known",
     "SlurmNodeUnknown", "cannot determine this machine's Slurm NodeName",
     ""},  // the detail has it
    {SlurmFailure::kSackUnavailable, "sack unavailable",
     "neither sackd nor slurmd serves auth/slurm here", "SackUnavailable",
     "neither sackd nor slurmd serves credentials (auth/slurm) on {host}, so Slurm cannot be "
     "queried",
     "start slurmd or sackd there", kEndsHere},
    {SlurmFailure::kFileSystemHangs, "file system not responding", "a file system does not respond",
     "FileSystemNotResponding", "a file system that Slurm needs here does not respond",
     "check its mount and its server", kEndsHere},
    {SlurmFailure::kOtherCluster, "other cluster", "the answer is from another cluster",
     "OtherCluster", "the answer is about a node of another cluster",
     "check slurm.conf and slurmlet-operator's slurmRestURL"},
    {SlurmFailure::kOperatorRequired, "operator required",
     "this site is too large for each node to query slurmctld", "OperatorRequired",
     "this site is too large for each node to query slurmctld",
     "run slurmlet-operator (docs/how-to/operator.md), which queries it for all nodes"},
};

constexpr bool has_a_row_for_each() {
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    if (kKinds[i].failure != static_cast<SlurmFailure>(i)) {
      return false;
    }
  }
  return std::size(kKinds) == static_cast<std::size_t>(SlurmFailure::kCount);
}
static_assert(has_a_row_for_each());

}  // namespace

const FailureKind& kind_of(SlurmFailure failure) {
  return kKinds[static_cast<std::size_t>(failure)];
}

}  // namespace slurmlet::node
