#pragma once

// A record as `scontrol -a -d -o show node` prints it.

#include <fmt/format.h>

#include <string>

namespace slurmlet::slurm {

inline std::string scontrol_record(const std::string& name, const std::string& state = "IDLE",
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

}  // namespace slurmlet::slurm
