#pragma once

// What the sources (host/, slurm/, metal3/) saw of this machine, as plain values. Everything that a
// source may fail to learn is optional: a missing fact becomes condition status Unknown or a
// missing key, never 0 or False. Values only: no I/O, no clock; safe to copy between threads.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"

namespace slurmlet::node {

struct Address {
  std::string type;  // "InternalIP", "Hostname" (core/v1 NodeAddressType)
  std::string address;
  bool operator==(const Address&) const = default;
};

// One kind of resource pressure, as the kubelet's MemoryPressure, DiskPressure and PIDPressure.
struct Pressure {
  bool under_pressure = false;
  std::string detail;  // stable words without figures, e.g. "memory available is below 100Mi"
  bool operator==(const Pressure&) const = default;
};

// host/: the machine itself.
struct MachineFacts {
  std::string hostname;                      // uname -n, as the kernel has it
  std::string machine_id;                    // /etc/machine-id
  std::string system_uuid;                   // SMBIOS product UUID, lower case; "" if unreadable
  std::string boot_id;                       // /proc/sys/kernel/random/boot_id
  std::string kernel_version;                // uname -r
  std::string os_image;                      // PRETTY_NAME of os-release(5)
  std::string architecture;                  // Go's GOARCH names: amd64, arm64
  std::optional<std::int64_t> cpus;          // logical CPUs online
  std::optional<std::int64_t> memory_bytes;  // MemTotal
  std::optional<std::int64_t> ephemeral_storage_bytes;  // size of the file system of the state dir
  std::vector<std::string> ip_addresses;          // candidates, best first; no loopback/link-local
  std::map<std::string, int> gpus_by_pci_vendor;  // display/3D controllers: "10de" → 4
  std::optional<Pressure> memory_pressure;
  std::optional<Pressure> disk_pressure;
  std::optional<Pressure> pid_pressure;
  bool operator==(const MachineFacts&) const = default;
};

// metal3/: who this machine is for Cluster API's Metal3 provider.
struct Metal3Facts {
  std::string uuid;         // meta_data.uuid = BareMetalHost metadata.uid
  std::string provider_id;  // "metal3://<namespace>/<bmh>/<m3m>", "" if metadata has none
  std::string node_name;    // RFC 1123, lower case; "" if metadata has none
  std::vector<std::string> ip_addresses;  // static addresses of network_data, in its order
  std::string source;                     // for people: the file or device it was read from
  bool operator==(const Metal3Facts&) const = default;
};

// One entry of Slurm's Gres string, e.g. gpu:a100:4(S:0-1).
struct Gres {
  std::string name;  // "gpu"
  std::string type;  // "a100", "" if untyped
  std::int64_t count = 0;
  bool operator==(const Gres&) const = default;
};

// Slurm's node state: one base state and flags, both in Slurm's own upper-case words.
struct SlurmState {
  std::string base;  // IDLE, ALLOCATED, MIXED, DOWN, ERROR, FUTURE, UNKNOWN, or a new one
  std::set<std::string> flags;  // DRAIN, NOT_RESPONDING, …, unknown ones kept
  std::string raw() const;      // "MIXED+DRAIN", flags in alphabetical order
  bool has(const std::string& flag) const { return flags.contains(flag); }
  bool operator==(const SlurmState&) const = default;
};

// slurm/: what slurmctld says of this node (one successful answer).
struct SlurmNodeRecord {
  std::string name;
  SlurmState state;
  std::optional<std::int64_t> cpus;  // total, threads as Slurm counts them
  std::optional<std::int64_t> real_memory_mib;
  std::vector<Gres> gres;  // configured
  std::vector<Gres> gres_used;
  std::string reason;  // "" if none
  std::string reason_user;
  std::optional<WallTime> reason_time;
  std::string version;  // slurmd's version as slurmctld has it
  std::vector<std::string> partitions;
  std::vector<std::string> features;
  std::string cluster;
  bool operator==(const SlurmNodeRecord&) const = default;
};

// Why slurmctld could not be asked, or gave no usable answer.
enum class SlurmFailure {
  kControllerUnreachable,  // refused, timed out inside the client, or no answer
  kTimeout,                // our own deadline
  kMungeUnavailable,
  kPermissionDenied,
  kNotInSlurm,        // an answer without this node
  kBadConfiguration,  // slurm.conf missing or broken
  kCommandMissing,    // sinfo is not installed
  kGarbage,           // an answer that cannot be understood
  kRateLimited,
};

struct SlurmAnswer {
  std::optional<SlurmNodeRecord> record;  // last successful answer, kept while failing
  std::optional<WallTime> answered_at;    // when that was
  std::optional<SlurmFailure> failure;    // of the last question; nothing after a success
  std::string failure_detail;             // Slurm's own text, one line; stable words
  bool stale = false;                     // record is older than the staleness bound
  bool operator==(const SlurmAnswer&) const = default;
};

// slurm/: slurmd seen on this machine.
struct SlurmdFacts {
  enum class Liveness { kUnknown, kRunning, kStopped, kAbsent };  // kStopped: SIGSTOP or traced
  Liveness liveness = Liveness::kUnknown;
  int pid = 0;
  std::string version;  // "22.05.8", "" if not learnt
  std::string detail;   // why unknown
  bool operator==(const SlurmdFacts&) const = default;
};

// slurm/: what slurm.conf and gres.conf on this machine say about this node.
struct SlurmConfFacts {
  std::string path;  // slurm.conf that was read, "" if none
  std::string cluster_name;
  std::vector<std::string> controllers;  // "head1:6817", in order
  std::string node_name;                 // NodeName of this node, "" if not found there
  std::int64_t core_spec_cpus = 0;       // CPUs (threads) that jobs may not use
  std::int64_t mem_spec_limit_mib = 0;
  std::string gpu_vendor;  // "nvidia", "amd", "intel" by gres.conf, "" if undecided
  bool operator==(const SlurmConfFacts&) const = default;
};

// slurm/: jobs seen on this machine through slurmd's spool directory and the cgroup tree.
struct LocalJobs {
  int jobs = 0;
  std::optional<std::int64_t> allocated_cpus;               // when a cpuset or affinity tells
  std::optional<std::int64_t> allocated_memory_bytes = {};  // when every job has a limit
  bool operator==(const LocalJobs&) const = default;
};

struct HostFacts {
  MachineFacts machine;
  std::optional<Metal3Facts> metal3;
  SlurmAnswer slurm;
  SlurmdFacts slurmd;
  SlurmConfFacts slurm_conf;
  std::optional<LocalJobs> jobs;  // nothing when the spool directory cannot be read
  bool operator==(const HostFacts&) const = default;
};

}  // namespace slurmlet::node
