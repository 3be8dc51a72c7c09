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

// One GPU on the machine's PCI bus (classes 0x03 and 0x12 of NVIDIA and AMD).
struct GpuDevice {
  std::string pci_address;  // "0000:3b:00.0"
  std::string vendor;       // "nvidia", "amd"
  std::string device_node;  // "/dev/nvidia3", "/dev/dri/renderD129"; "" without one
  bool has_driver = false;  // the vendor's driver has taken it
  // Slices that it is divided into (MIG, AMD's compute partitions): 0 = it is whole; nothing if
  // their number, or whether there are any, is not known.
  std::optional<int> slices = 0;
  bool operator==(const GpuDevice&) const = default;
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
  std::optional<std::int64_t> swap_bytes;    // SwapTotal; 0 = no swap
  std::optional<std::int64_t> ephemeral_storage_bytes;  // size of the file system of the state dir
  std::vector<std::string> ip_addresses;          // candidates, best first; no loopback/link-local
  std::map<std::string, int> gpus_by_pci_vendor;  // display/3D controllers: "10de" → 4
  bool gpus_hang = false;  // their driver does not answer: what follows is old, or nothing
  std::optional<std::vector<GpuDevice>> gpus;  // nothing if /sys/bus/pci cannot be read
  std::vector<std::string> missing_gpu_files;  // of node::card_files(), those that do not exist
  std::optional<Pressure> memory_pressure;
  std::optional<Pressure> disk_pressure;
  std::string
      disk_problem;  // "/state did not answer for 5 s": why that is missing; "" = unreadable
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

// One entry of Slurm's Gres or GresUsed, e.g. gpu:a100:4(S:0-1), shard:tesla:3(3/4,0/4).
struct Gres {
  std::string name;  // "gpu"
  std::string type;  // "a100", "" if untyped
  std::int64_t count = 0;
  std::string sockets = {};  // "0-1" of (S:0-1), "" if not reported
  std::string indices = {};  // "0,2-3" of (IDX:0,2-3), "" if none or not reported
  std::string shares = {};   // "3/4,0/4": used and total of each device (shard, mps)
  bool no_consume = false;
  bool operator==(const Gres&) const = default;
};

// Slurm's node state: one base state and flags, both in Slurm's own upper-case words.
struct SlurmState {
  std::string base;  // IDLE, ALLOCATED, MIXED, DOWN, ERROR, FUTURE, UNKNOWN, or a new one
  std::set<std::string> flags;  // DRAIN, NOT_RESPONDING, …, unknown ones kept
  // "MIXED+DRAIN", flags in alphabetical order
  std::string raw() const {
    std::string text = base;
    for (const auto& flag : flags) {
      text += "+" + flag;
    }
    return text;
  }
  bool has(const std::string& flag) const { return flags.contains(flag); }
  bool operator==(const SlurmState&) const = default;
};

// slurm/: what slurmctld says of this node, from a list of all nodes (one successful answer): state
// and allocations are its own and fresh. Numbers as Slurm has them; what the answer's form does not
// carry is missing.
struct SlurmNodeRecord {
  std::string name;
  std::string hostname;  // NodeHostName
  std::string address;   // NodeAddr; "" if not reported
  SlurmState state;
  std::optional<std::int64_t> cpus;            // total, as Slurm counts them (CPUTot)
  std::optional<std::int64_t> effective_cpus;  // without those of CoreSpec (CPUEfctv)
  std::optional<std::int64_t> allocated_cpus;
  std::optional<std::int64_t> real_memory_mib;
  std::optional<std::int64_t> allocated_memory_mib;
  std::optional<std::int64_t> mem_spec_limit_mib;
  std::optional<std::int64_t> free_memory_mib;  // as of slurmd's last report
  std::optional<double> cpu_load;               // likewise, runnable processes
  std::vector<Gres> gres;                       // configured
  std::vector<Gres> gres_used;
  std::string gres_drained;  // as Slurm prints it; "" for N/A
  std::string reason;        // "" if none
  std::string reason_user;
  std::optional<WallTime> reason_time;
  std::string version;  // slurmd's version as slurmctld has it
  std::vector<std::string> partitions;
  bool partitions_known = true;              // slurmrestd before 25.05.4 reports another node's
  std::vector<std::string> features;         // available
  std::vector<std::string> active_features;  // of those, the active ones
  std::string cluster;
  std::string next_state;   // after a reboot; "" if none
  std::string reservation;  // that it is in; "" if none or not reported
  std::string comment, extra, instance_id, instance_type;
  std::string operating_system, architecture;
  std::optional<WallTime> boot_time, slurmd_start_time, last_busy, resume_after;
  bool operator==(const SlurmNodeRecord&) const = default;
};

// Why slurmctld gave no usable answer.
enum class SlurmFailure {
  kControllerUnreachable,  // refused, timed out inside the client, or no answer
  kTimeout,                // our own deadline
  kMungeUnavailable,       // munged does not run here (or on slurmrestd's host)
  kAuthenticationRefused,  // munge works, but the other side does not take its credentials
  kClockSkew,              // a credential from the future or the past
  kTokenRefused,           // slurmrestd or slurmctld does not take the JWT, or there is none
  kPermissionDenied,
  kNotInSlurm,        // an answer without this node
  kBadConfiguration,  // slurm.conf missing or broken
  kCommandMissing,    // scontrol is not installed
  kInvalidResponse,   // an answer that cannot be understood
  kRateLimited,
  kRestUnavailable,    // slurmrestd cannot be reached, or serves no API version known here
  kRecordUnavailable,  // slurmlet-operator's record is missing, too old or not this node's
  kNodeUnknown,        // which of Slurm's nodes this machine is cannot be determined
  kSackUnavailable,    // auth/slurm: neither sackd nor slurmd serves credentials on this node
  kFileSystemHangs,    // on this machine, below Slurm's files or programs
  kOtherCluster,       // the answer is of a node of another cluster
  kOperatorRequired,   // the site is too large for each node to query for itself
  kCount,              // of the causes above: each has a row in slurm_failure.cpp
};

struct SlurmAnswer {
  std::optional<SlurmNodeRecord> record;  // last successful answer, kept while failing
  std::optional<WallTime> answered_at;    // when that was
  std::optional<SlurmFailure> failure;    // of the last query; nothing after a success
  std::string failure_detail;             // Slurm's own text, one line; stable words
  std::string source;                     // "scontrol" or "slurmlet-operator"
  bool stale = false;                     // record is older than the staleness bound
  bool operator==(const SlurmAnswer&) const = default;
};

// slurm/: slurmd seen on this machine.
struct SlurmdFacts {
  enum class Liveness { kUnknown, kRunning, kStopped, kAbsent };  // kStopped: SIGSTOP or traced
  Liveness liveness = Liveness::kUnknown;
  int pid = 0;
  std::string version;  // "22.05.8", "" if not learnt
  std::string detail;   // why unknown, or what systemd says of a unit that is not running
  bool operator==(const SlurmdFacts&) const = default;
};

// slurm/: what slurm.conf and gres.conf on this machine say about this node.
struct SlurmConfFacts {
  std::string path;  // slurm.conf that was read, "" if none
  std::string cluster_name;
  std::vector<std::string> controllers;  // "head1:6817", in order
  std::string node_name;                 // NodeName of this node, "" if not found there
  std::int64_t cpus = 0;                 // CPUs=, 0 if not given: as many as there are threads
  std::int64_t core_spec_cpus = 0;       // that jobs may not use, as Slurm counts CPUs
  // Every job has a step on each of its nodes from its start to its end (PrologFlags=Contain), so
  // what is seen here is all that is allocated.
  bool jobs_are_contained = false;
  std::int64_t mem_spec_limit_mib = 0;
  std::string gpu_vendor;  // "nvidia", "amd", "intel" by gres.conf, "" if undecided
  // Of each of this node's GPUs that gres.conf lists (File=, MultipleFiles=), its files; in order.
  std::vector<std::vector<std::string>> gpu_files = {};
  std::vector<Gres> gres = {};  // Gres= of this node's line
  bool operator==(const SlurmConfFacts&) const = default;
};

// slurm/: jobs seen on this machine through slurmd's spool directory and the cgroup tree.
struct LocalJobs {
  int jobs = 0;
  // As Slurm counts CPUs; when every job has a cpuset.
  std::optional<std::int64_t> allocated_cpus;
  std::optional<std::int64_t> allocated_memory_bytes = {};  // when every job has a limit
  std::vector<std::uint32_t> job_ids = {};                  // ascending, `jobs` of them
  bool operator==(const LocalJobs&) const = default;
};

struct HostFacts {
  MachineFacts machine;
  std::optional<Metal3Facts> metal3;
  SlurmAnswer slurm;
  SlurmdFacts slurmd;
  SlurmConfFacts slurm_conf;
  std::string slurm_node = {};    // NodeName of this machine, "" while it is not certain
  std::optional<LocalJobs> jobs;  // nothing when the spool directory cannot be read
  std::string jobs_problem = {};  // the file system that does not answer then; "" = it does
  bool operator==(const HostFacts&) const = default;
};

}  // namespace slurmlet::node
