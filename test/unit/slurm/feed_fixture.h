#pragma once

// Records as `scontrol -a -d -o show node` prints them, and a directory for a feed.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace slurmlet::slurm {

inline std::string feed_record(const std::string& name, const std::string& state = "IDLE",
                               const std::string& tail = "", const std::string& load = "0.05") {
  return fmt::format(
      "NodeName={} Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUEfctv=4 CPUTot=4 CPULoad={} "
      "AvailableFeatures=rack1 ActiveFeatures=rack1 Gres=gpu:a100:2 GresDrain=N/A "
      "GresUsed=gpu:a100:0(IDX:N/A) NodeAddr=127.0.0.1 NodeHostName=head1 Port=6818 "
      "Version=22.05.8 OS=Linux 6.1.0 #1 SMP x86_64  RealMemory=8000 AllocMem=0 FreeMem=4242 "
      "Sockets=4 Boards=1 State={} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A "
      "Partitions=normal,debug  BootTime=1763700000 SlurmdStartTime=1763700100 "
      "LastBusyTime=1763700200 CfgTRES=cpu=4,mem=8000M,billing=4 AllocTRES= CapWatts=n/a "
      "CurrentWatts=0 AveWatts=0 ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s{}\n",
      name, load, state, tail);
}

// One below a path without links, removed at the end.
class FeedPlace {
 public:
  FeedPlace() {
    std::string name = std::filesystem::canonical(testing::TempDir()).string() + "/feedXXXXXX";
    root = ::mkdtemp(name.data());
  }
  ~FeedPlace() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  FeedPlace(const FeedPlace&) = delete;
  FeedPlace& operator=(const FeedPlace&) = delete;

  std::filesystem::path feed() const { return root / "feed"; }
  std::filesystem::path node(const std::string& name) const { return feed() / "nodes" / name; }
  std::filesystem::path header() const { return feed() / "feed.json"; }

  static std::string text(const std::filesystem::path& path) {
    const std::ifstream in{path, std::ios::binary};
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  static void write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path, std::ios::binary | std::ios::trunc} << text;
  }

  std::filesystem::path root;
};

}  // namespace slurmlet::slurm
