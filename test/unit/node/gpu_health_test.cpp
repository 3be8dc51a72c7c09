#include "node/gpu_health.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace gpu_health_test {

using Files = std::vector<std::string>;

std::vector<std::string> nvidia_files(int count) {
  std::vector<std::string> files;
  for (int i = 0; i < count; ++i) {
    files.push_back("/dev/nvidia" + std::to_string(i));
  }
  return files;
}

GpuDevice device(int number, const char* vendor, bool has_driver, const std::string& node) {
  return {"0000:" + std::to_string(10 + number) + ":00.0", vendor, node, has_driver};
}

// NVIDIA devices with these numbers, and one without a driver at each of these addresses.
std::vector<GpuDevice> nvidia(const std::vector<int>& minors, const Files& driverless = {}) {
  std::vector<GpuDevice> out;
  for (const int minor : minors) {
    out.push_back(device(minor, "nvidia", true, "/dev/nvidia" + std::to_string(minor)));
  }
  for (const auto& address : driverless) {
    out.push_back({address, "nvidia", "", false});
  }
  return out;
}

std::vector<int> numbers(int count) {
  std::vector<int> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

std::vector<GpuDevice> amd(int driven, int driverless = 0) {
  std::vector<GpuDevice> out;
  for (int i = 0; i < driven + driverless; ++i) {
    out.push_back(device(i, "amd", i < driven, ""));
  }
  return out;
}

struct Row {
  std::vector<Gres> gres;
  std::string vendor;  // by gres.conf
  Files files;         // by gres.conf
  Files missing;
  std::optional<std::vector<GpuDevice>> gpus;
  const char* status;
  const char* reason;
  const char* message;
};

// As of File=: each is a GPU.
std::vector<Files> each(const Files& files) {
  std::vector<Files> out;
  for (const auto& file : files) {
    out.push_back({file});
  }
  return out;
}

void set_gpus(MachineFacts& machine, const std::optional<std::vector<GpuDevice>>& gpus) {
  machine.gpus = gpus;
  for (const auto& gpu : gpus.value_or(std::vector<GpuDevice>{})) {
    ++machine.gpus_by_pci_vendor[gpu.vendor == "nvidia" ? "10de" : "1002"];
  }
}

void expect(const Row& row) {
  HostFacts facts = good_facts();
  facts.slurm.record->gres = row.gres;
  facts.slurm_conf.gpu_vendor = row.vendor;
  facts.slurm_conf.gpu_files = each(row.files);
  facts.machine.missing_gpu_files = row.missing;
  set_gpus(facts.machine, row.gpus);
  const auto condition = gpu_condition(facts);
  ASSERT_TRUE(condition) << row.message;
  EXPECT_EQ(*condition, (Condition{"GPUHealthy", row.status, row.reason, row.message}))
      << condition->message;
  EXPECT_TRUE(is_gpu_condition_of_ours(*condition));
}

const std::vector<GpuDevice> kNoDevices;

TEST(GpuConditionTest, ByTheDeviceFilesOfGresConf) {
  const Row kRows[] = {
      {{{"gpu", "a100", 8}},
       "nvidia",
       nvidia_files(8),
       {},
       nvidia({0, 1, 2, 3, 4, 5, 6, 7}),
       "True",
       "AllGPUsPresent",
       "all 8 GPUs that Slurm expects are present"},
      {{{"gpu", "a100", 8}},
       "nvidia",
       nvidia_files(8),
       {"/dev/nvidia5"},
       nvidia({0, 1, 2, 3, 4, 6, 7}),
       "False",
       "GPUMissing",
       "Slurm expects 8 GPUs, the machine has 7: /dev/nvidia5 is missing"},
      {{{"gpu", "a", 2}, {"gpu", "b", 1}},
       "",
       {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2"},
       {"/dev/nvidia0", "/dev/nvidia2"},
       std::nullopt,
       "False",
       "GPUMissing",
       "Slurm expects 3 GPUs, the machine has 1: /dev/nvidia0, /dev/nvidia2 are missing"},
      {{{"gpu", "", 1}},
       "",
       {"/dev/dri/renderD128"},
       {"/dev/dri/renderD128"},
       amd(0),
       "False",
       "GPUMissing",
       "Slurm expects 1 GPU, the machine has 0: /dev/dri/renderD128 is missing"},
      // fake GPUs: a file that exists is present, whatever it is
      {{{"gpu", "a100", 2}},
       "",
       {"/dev/tty1", "/dev/tty2"},
       {},
       kNoDevices,
       "True",
       "AllGPUsPresent",
       "all 2 GPUs that Slurm expects are present"},
      {{{"gpu", "a100", 1}},
       "nvidia",
       {"/dev/nvidia0"},
       {},
       kNoDevices,
       "True",
       "AllGPUsPresent",
       "the GPU that Slurm expects is present"},
      // the file has outlived its device
      {{{"gpu", "a100", 3}},
       "nvidia",
       nvidia_files(3),
       {},
       nvidia({0, 2}),
       "False",
       "GPUMissing",
       "Slurm expects 3 GPUs, the machine has 2: /dev/nvidia1 is missing"},
      // one gres.conf for nodes of 4 and of 8
      {{{"gpu", "a100", 4}},
       "nvidia",
       nvidia_files(6),
       {"/dev/nvidia4", "/dev/nvidia5"},
       nvidia({0, 1, 2, 3}),
       "True",
       "AllGPUsPresent",
       "all 4 GPUs that Slurm expects are present; gres.conf lists more files, of which "
       "/dev/nvidia4, /dev/nvidia5 are missing"},
      {{{"gpu", "a100", 4}},
       "nvidia",
       nvidia_files(5),
       {"/dev/nvidia3", "/dev/nvidia4"},
       nvidia({0, 1, 2}),
       "False",
       "GPUMissing",
       "of the GPU device files listed in gres.conf, /dev/nvidia3, /dev/nvidia4 are missing"},
      // more than Slurm uses
      {{{"gpu", "a100", 2}},
       "nvidia",
       nvidia_files(2),
       {},
       nvidia({0, 1, 2, 3}, {"0000:86:00.0"}),
       "True",
       "AllGPUsPresent",
       "all 2 GPUs that Slurm expects are present; GPUs not used by Slurm: 2; 0000:86:00.0 has no "
       "driver"},
      // slices of GPUs
      {{{"gpu", "a100_1g.5gb", 7}},
       "nvidia",
       {"/dev/nvidia0"},
       {},
       nvidia({0}),
       "True",
       "AllGPUsPresent",
       "all cards whose device files gres.conf lists are present"},
      {{{"gpu", "a100_1g.5gb", 7}},
       "nvidia",
       {"/dev/nvidia0"},
       {"/dev/nvidia0"},
       nvidia({}),
       "False",
       "GPUMissing",
       "of the GPU device files listed in gres.conf, /dev/nvidia0 is missing"},
  };
  for (const Row& row : kRows) {
    expect(row);
  }
}

TEST(GpuConditionTest, ByTheDevicesWithADriver) {
  const Row kRows[] = {
      {{{"gpu", "a100", 4}},
       "nvidia",
       {},
       {},
       nvidia({0, 1, 2, 3}),
       "True",
       "AllGPUsPresent",
       "all 4 GPUs that Slurm expects are present"},
      {{{"gpu", "a100", 4}},
       "nvidia",
       {},
       {},
       nvidia({0, 1, 2}, {"0000:86:00.0"}),
       "False",
       "GPUMissing",
       "Slurm expects 4 GPUs, the machine has 3: 0000:86:00.0 has no driver"},
      {{{"gpu", "a100", 8}},
       "nvidia",
       {},
       {},
       nvidia({0, 1, 2, 3, 4, 6, 7}),
       "False",
       "GPUMissing",
       "Slurm expects 8 GPUs, the machine has 7: /dev/nvidia5 is missing"},
      {{{"gpu", "a100", 4}},
       "nvidia",
       {},
       {},
       nvidia({0, 1, 2}),
       "False",
       "GPUMissing",
       "Slurm expects 4 GPUs, the machine has 3: 1 is not on the PCI bus"},
      {{{"gpu", "a100", 8}},
       "nvidia",
       {},
       {},
       nvidia({0, 2}, {"0000:86:00.0", "0000:87:00.0"}),
       "False",
       "GPUMissing",
       "Slurm expects 8 GPUs, the machine has 2: 0000:86:00.0, 0000:87:00.0 have no driver; "
       "/dev/nvidia1 is missing; 3 are not on the PCI bus"},
      {{{"gpu", "mi300x", 8}},
       "amd",
       {},
       {},
       amd(7, 1),
       "False",
       "GPUMissing",
       "Slurm expects 8 GPUs, the machine has 7: 0000:17:00.0 has no driver"},
      {{{"gpu", "mi300x", 8}},
       "amd",
       {},
       {},
       amd(8),
       "True",
       "AllGPUsPresent",
       "all 8 GPUs that Slurm expects are present"},
      // another vendor's do not count
      {{{"gpu", "a100", 2}},
       "nvidia",
       {},
       {},
       amd(2),
       "False",
       "GPUMissing",
       "Slurm expects 2 GPUs, the machine has 0: 2 are not on the PCI bus"},
      // shards and slices are parts of GPUs
      {{{"gpu", "h200", 2}, {"gpu", "h200_3g.71gb", 6}, {"shard", "h200", 16}, {"mps", "", 200}},
       "nvidia",
       {},
       {},
       nvidia({0, 1, 2}),
       "True",
       "AllGPUsPresent",
       "all 2 GPUs that Slurm expects are present"},
      {{{"gpu", "h200", 2}, {"gpu", "h200_3g.71gb", 6}},
       "nvidia",
       {},
       {},
       nvidia({0, 1}),
       "False",
       "GPUMissing",
       "Slurm expects 2 GPUs and MIG slices of at least 1 more, the machine has 2: 1 is not on the "
       "PCI bus"},
      // gres.conf tells nothing, the machine enough
      {{{"gpu", "", 2}},
       "",
       {},
       {},
       nvidia({0, 1, 2}),
       "True",
       "AllGPUsPresent",
       "all 2 GPUs that Slurm expects are present; GPUs not used by Slurm: 1"},
      {{{"gpu", "", 2}},
       "",
       {},
       {},
       nvidia({0}, {"0000:86:00.0"}),
       "False",
       "GPUMissing",
       "Slurm expects 2 GPUs, the machine has 1: 0000:86:00.0 has no driver"},
  };
  for (const Row& row : kRows) {
    expect(row);
  }
}

TEST(GpuConditionTest, WhatCannotBeComparedIsUnknown) {
  const char* not_named =
      "Slurm expects 2 GPUs, which cannot be compared with the machine's: gres.conf does not list "
      "a "
      "device file (File=) for each, and has no AutoDetect= of NVIDIA (nvml, nvidia) or AMD (rsmi) "
      "for them";
  const std::vector<GpuDevice> both{device(0, "nvidia", true, ""), device(1, "amd", true, ""),
                                    device(2, "amd", true, "")};
  const Row kRows[] = {
      {{{"gpu", "a100", 2}}, "", {}, {}, kNoDevices, "Unknown", "GPUDevicesUnspecified", not_named},
      {{{"gpu", "a100", 2}},
       "",
       {},
       {},
       nvidia({0}),
       "Unknown",
       "GPUDevicesUnspecified",
       not_named},
      {{{"gpu", "", 2}}, "", {}, {}, both, "Unknown", "GPUDevicesUnspecified", not_named},
      {{{"gpu", "", 2}},
       "intel",
       {},
       {},
       kNoDevices,
       "Unknown",
       "GPUDevicesUnspecified",
       not_named},
      {{{"gpu", "", 2}},
       "nvidia",
       {},
       {},
       std::nullopt,
       "Unknown",
       "GPUsUnreadable",
       "the machine's PCI devices cannot be read"},
      {{{"gpu", "h200_3g.71gb", 6}},
       "nvidia",
       {},
       {},
       nvidia({0}),
       "Unknown",
       "OnlyGPUSlices",
       "Slurm uses only GPU slices (MIG) here, which cannot be seen without the vendor's library"},
  };
  for (const Row& row : kRows) {
    expect(row);
  }
}

// Up to four cards, the first ones in seven slices each, of which one has lost some.
TEST(GpuConditionTest, LostSlicesAreNoMissingCards) {
  for (int cards = 1; cards <= 4; ++cards) {
    for (int divided = 0; divided <= cards; ++divided) {
      for (int left = 0; left <= 7; ++left) {
        for (const bool typed : {true, false}) {
          SCOPED_TRACE(fmt::format("{} cards, {} divided, {} slices left, {}", cards, divided, left,
                                   typed ? "typed" : "untyped"));
          HostFacts facts = good_facts();
          facts.slurm_conf.gpu_vendor = "nvidia";
          const int whole = cards - divided;
          facts.slurm.record->gres =
              typed ? std::vector<Gres>{{"gpu", "a100", whole}, {"gpu", "a100_1g.5gb", 7 * divided}}
                    : std::vector<Gres>{{"gpu", "", whole + 7 * divided}};
          std::vector<GpuDevice> gpus = nvidia(numbers(cards));
          for (int i = 0; i < divided; ++i) {
            gpus[static_cast<std::size_t>(i)].slices = i == 0 ? left : 7;
          }
          set_gpus(facts.machine, gpus);
          // With the last slice goes what shows that an untyped number is not of cards.
          const bool shows_slices = typed || divided != 1 || left > 0;
          if (shows_slices) {
            EXPECT_NE(gpu_condition(facts)->status, "False");
          }
          if (whole > 0 && left > 0) {
            facts.machine.gpus->pop_back();  // a whole card
            EXPECT_EQ(gpu_condition(facts)->status, typed || divided == 0 ? "False" : "Unknown");
          }
        }
      }
    }
  }
}

// gres.conf may be one for all nodes: its files alone make no GPU node.
TEST(GpuConditionTest, NoneWhereSlurmHasNoGpus) {
  for (const auto& gres : {std::vector<Gres>{}, std::vector<Gres>{{"gpu", "", 0}},
                           std::vector<Gres>{{"nic", "", 4}, {"shard", "a", 4}}}) {
    HostFacts facts = good_facts();
    facts.slurm.record->gres = gres;
    facts.slurm_conf.gpu_files = each(nvidia_files(4));
    facts.machine.missing_gpu_files = nvidia_files(4);
    set_gpus(facts.machine, nvidia({0, 1}));
    EXPECT_FALSE(gpu_condition(facts));
  }
}

// slurm.conf tells as well, so that a restart while slurmctld is down changes nothing.
TEST(GpuConditionTest, BeforeSlurmctldsAnswerSlurmConfCounts) {
  HostFacts facts = good_facts();
  facts.slurm.record->gres = {{"gpu", "a100", 2}};
  facts.slurm_conf.gres = facts.slurm.record->gres;
  facts.slurm_conf.gpu_files = each(nvidia_files(2));
  facts.machine.missing_gpu_files = {"/dev/nvidia1"};
  const auto after = gpu_condition(facts);
  facts.slurm = {};
  EXPECT_EQ(gpu_condition(facts), after);
  EXPECT_TRUE(after);
  facts.slurm_conf.gres = {};  // a dynamic node's are not there
  EXPECT_FALSE(gpu_condition(facts));
}

// Files without a missing one would look healthy.
TEST(GpuConditionTest, UnknownWhileTheDriverHangs) {
  for (const int files : {2, 0}) {
    HostFacts facts = good_facts();
    facts.slurm.record->gres = {{"gpu", "a100", 2}};
    facts.slurm_conf.gpu_files = each(nvidia_files(files));
    set_gpus(facts.machine, nvidia({0, 1}));
    facts.machine.gpus_hang = true;
    ASSERT_TRUE(gpu_condition(facts));
    EXPECT_EQ(gpu_condition(facts)->status, "Unknown");
    EXPECT_EQ(gpu_condition(facts)->reason, "GPUsUnreadable");
  }
}

TEST(GpuConditionTest, AnothersConditionOfThatNameIsNotOurs) {
  EXPECT_FALSE(is_gpu_condition_of_ours({"GPUHealthy", "True", "NoXidErrors", "x"}));
  EXPECT_FALSE(is_gpu_condition_of_ours({"Ready", "False", "GPUMissing", "x"}));
}

}  // namespace gpu_health_test
}  // namespace slurmlet::node
