#include "node/gpu_health.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/text.h"
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

std::vector<GpuDevice> amd(int driven, int driverless) {
  std::vector<GpuDevice> out;
  for (int i = 0; i < driven + driverless; ++i) {
    out.push_back(device(i, "amd", i < driven, ""));
  }
  return out;
}

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

Files items(std::string_view text, char separator) {
  Files out;
  for (const auto item : split(text, separator)) {
    if (!trim(item).empty()) {
      out.emplace_back(trim(item));
    }
  }
  return out;
}

// "0,2": /dev/nvidia0 and 2; else files.
Files files_of(std::string_view text) {
  Files out = items(text, ',');
  for (auto& file : out) {
    file.insert(0, file.starts_with('/') ? "" : "/dev/nvidia");
  }
  return out;
}

// "nvidia 0,1 ADDRESS": two, and one without a driver; "amd 7+1" likewise; "-": unreadable.
std::optional<std::vector<GpuDevice>> devices_of(std::string_view text) {
  const auto words = split(trim(text), ' ');
  if (words.front() == "-") {
    return std::nullopt;
  }
  if (words.front() == "both") {
    return std::vector{device(0, "nvidia", true, ""), device(1, "amd", true, ""),
                       device(2, "amd", true, "")};
  }
  if (words.front() == "amd") {
    const auto counts = split(words[1], '+');
    return amd(parse_int<int>(counts[0]).value(),
               counts.size() > 1 ? parse_int<int>(counts[1]).value() : 0);
  }
  std::vector<int> minors;
  for (const auto& minor : items(words.size() > 1 ? words[1] : "", ',')) {
    minors.push_back(parse_int<int>(minor).value());
  }
  return nvidia(minors, items(words.size() > 2 ? words[2] : "", ','));
}

// gres | vendor by gres.conf | its files | missing files | devices | status and reason | words
constexpr const char* kTable = R"(
By the device files of gres.conf
gpu:a100:8 | nvidia | 0,1,2,3,4,5,6,7 | | nvidia 0,1,2,3,4,5,6,7 | True AllGPUsPresent | 8 GPUs
gpu:a100:8 | nvidia | 0,1,2,3,4,5,6,7 | 5 | nvidia 0,1,2,3,4,6,7 | False GPUMissing | 8 GPUs & has 7: & /dev/nvidia5
gpu:a:2,gpu:b:1 | | 0,1,2 | 0,2 | - | False GPUMissing | 3 GPUs & has 1: & /dev/nvidia0, /dev/nvidia2
gpu:1 | | /dev/dri/renderD128 | /dev/dri/renderD128 | amd 0 | False GPUMissing | 1 GPU, & has 0: & renderD128
fake GPUs: a file that exists is present, whatever it is
gpu:a100:2 | | /dev/tty1,/dev/tty2 | | nvidia | True AllGPUsPresent | 2 GPUs
gpu:a100:1 | nvidia | 0 | | nvidia | True AllGPUsPresent |
the file has outlived its device
gpu:a100:3 | nvidia | 0,1,2 | | nvidia 0,2 | False GPUMissing | has 2: & /dev/nvidia1
one gres.conf for nodes of 4 and of 8
gpu:a100:4 | nvidia | 0,1,2,3,4,5 | 4,5 | nvidia 0,1,2,3 | True AllGPUsPresent | 4 GPUs & more files & /dev/nvidia4, /dev/nvidia5
gpu:a100:4 | nvidia | 0,1,2,3,4 | 3,4 | nvidia 0,1,2 | False GPUMissing | gres.conf & /dev/nvidia3, /dev/nvidia4
more than Slurm uses
gpu:a100:2 | nvidia | 0,1 | | nvidia 0,1,2,3 0000:86:00.0 | True AllGPUsPresent | not used by Slurm: 2 & 0000:86:00.0
slices of GPUs
gpu:a100_1g.5gb:7 | nvidia | 0 | | nvidia 0 | True AllGPUsPresent | gres.conf
gpu:a100_1g.5gb:7 | nvidia | 0 | 0 | nvidia | False GPUMissing | gres.conf & /dev/nvidia0

By the devices with a driver
gpu:a100:4 | nvidia | | | nvidia 0,1,2,3 | True AllGPUsPresent | 4 GPUs
gpu:a100:4 | nvidia | | | nvidia 0,1,2 0000:86:00.0 | False GPUMissing | has 3: & 0000:86:00.0 has no driver
gpu:a100:8 | nvidia | | | nvidia 0,1,2,3,4,6,7 | False GPUMissing | has 7: & /dev/nvidia5
gpu:a100:4 | nvidia | | | nvidia 0,1,2 | False GPUMissing | has 3: & 1 is not on the PCI bus
gpu:a100:8 | nvidia | | | nvidia 0,2 0000:86:00.0,0000:87:00.0 | False GPUMissing | has 2: & 0000:86:00.0, 0000:87:00.0 & /dev/nvidia1 & 3 are not on the PCI bus
gpu:mi300x:8 | amd | | | amd 7+1 | False GPUMissing | has 7: & 0000:17:00.0 has no driver
gpu:mi300x:8 | amd | | | amd 8 | True AllGPUsPresent | 8 GPUs
another vendor's do not count
gpu:a100:2 | nvidia | | | amd 2 | False GPUMissing | has 0: & 2 are not on the PCI bus
shards and slices are parts of GPUs
gpu:h200:2,gpu:h200_3g.71gb:6,shard:h200:16,mps:200 | nvidia | | | nvidia 0,1,2 | True AllGPUsPresent | 2 GPUs
gpu:h200:2,gpu:h200_3g.71gb:6 | nvidia | | | nvidia 0,1 | False GPUMissing | 2 GPUs and MIG slices & 1 is not on the PCI bus
gres.conf tells nothing, the machine enough
gpu:2 | | | | nvidia 0,1,2 | True AllGPUsPresent | not used by Slurm: 1
gpu:2 | | | | nvidia 0 0000:86:00.0 | False GPUMissing | 0000:86:00.0

What cannot be compared
gpu:a100:2 | | | | nvidia | Unknown GPUDevicesUnspecified | 2 GPUs & File= & AutoDetect=
gpu:a100:2 | | | | nvidia 0 | Unknown GPUDevicesUnspecified | 2 GPUs
gpu:2 | | | | both | Unknown GPUDevicesUnspecified | 2 GPUs
gpu:2 | intel | | | nvidia | Unknown GPUDevicesUnspecified | 2 GPUs
gpu:2 | nvidia | | | - | Unknown GPUsUnreadable | PCI
gpu:h200_3g.71gb:6 | nvidia | | | nvidia 0 | Unknown OnlyGPUSlices | slices (MIG)
)";

TEST(GpuConditionTest, Table) {
  for (const auto line : split(kTable, '\n')) {
    SCOPED_TRACE(line);
    const auto row = split(line, '|');
    if (row.size() == 1) {
      continue;
    }
    ASSERT_EQ(row.size(), 7U);
    HostFacts facts = good_facts();
    facts.slurm.record->gres = gres_of(row[0]);
    facts.slurm_conf.gpu_vendor = trim(row[1]);
    facts.slurm_conf.gpu_files = each(files_of(row[2]));
    facts.machine.missing_gpu_files = files_of(row[3]);
    set_gpus(facts.machine, devices_of(row[4]));
    const auto condition = gpu_condition(facts);
    ASSERT_TRUE(condition);
    EXPECT_TRUE(is_gpu_condition_of_ours(*condition));
    EXPECT_EQ(condition->status + " " + condition->reason, trim(row[5])) << condition->message;
    for (const auto& words : items(row[6], '&')) {
      EXPECT_THAT(condition->message, ::testing::HasSubstr(words));
    }
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
