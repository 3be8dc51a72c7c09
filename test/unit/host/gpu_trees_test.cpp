// Whole machines with GPUs (test/fixtures/host/gpus), from their files to the Node's condition.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "base/file.h"
#include "base/text.h"
#include "fakes/temp_tree.h"
#include "fixtures.h"
#include "host/gpus.h"
#include "host/machine.h"
#include "node/gpu_cards.h"
#include "node/gpu_health.h"
#include "node/node_fixtures.h"
#include "node/resources.h"

namespace slurmlet::host {
namespace gpu_trees_test {

using Names = std::vector<std::string>;

void plant(const std::string& name, fakes::TempTree& tree) {
  const auto text = read_file(fixtures() / "host/gpus" / (name + ".tree"));
  ASSERT_TRUE(text) << name;
  for (const auto line : split(*text, '\n')) {
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    if (const auto link = line.find(" -> "); link != std::string_view::npos) {
      tree.symlink(line.substr(link + 4), line.substr(0, link));
    } else if (const auto file = line.find(" ="); file != std::string_view::npos) {
      tree.file(line.substr(0, file), std::string{trim(line.substr(file + 2))} + "\n");
    } else {
      tree.dir(line);
    }
  }
}

// [tree], then its rows: what | gres | vendor by gres.conf | GPU files in gres.conf | paths missing
// in the tree | status and reason | GPU resources | words of the message
constexpr const char* kTable = R"(
[a100-mig]
untyped slices | gpu:7 | nvidia | | | Unknown GPUSlicesCounted | slurmlet.io/gpu=7 | 1 card, 1 divided into slices (MIG)
slices that bear the card's type | gpu:a100:7 | nvidia | | | Unknown GPUSlicesCounted | slurmlet.io/gpu=7 |
untyped, without AutoDetect | gpu:7 | | | | Unknown GPUSlicesCounted | slurmlet.io/gpu=7 |
a slice was destroyed | gpu:7 | nvidia | | CAPS/gpu0/mig/gi7 | Unknown GPUSlicesCounted | slurmlet.io/gpu=7 |
an instance that nothing can use yet | gpu:7 | nvidia | | CAPS/gpu0/mig/gi7/ci0 | Unknown GPUSlicesCounted | slurmlet.io/gpu=7 |
the card is gone | gpu:7 | nvidia | | PCI/0000:17:00.0,proc/driver/nvidia/gpus | False GPUMissing | nvidia.com/gpu=7 | not on the PCI bus
typed slices | gpu:a100_1g.5gb:7 | nvidia | | | Unknown OnlyGPUSlices | nvidia.com/mig-1g.5gb=7 |
typed slices and no card | gpu:a100_1g.5gb:7 | nvidia | | PCI/0000:17:00.0,proc/driver/nvidia/gpus | False GPUMissing | nvidia.com/mig-1g.5gb=7 | slices of at least 1 GPU, the machine has 0 & not on the PCI bus
untyped slices with their files | gpu:7 | nvidia | slices of /dev/nvidia0 | | True AllGPUsPresent | slurmlet.io/gpu=7 |
a slice's file is gone | gpu:7 | nvidia | slices of /dev/nvidia0 | dev/nvidia-caps/nvidia-cap66 | True AllGPUsPresent | slurmlet.io/gpu=7 |
the card's file is gone | gpu:7 | nvidia | slices of /dev/nvidia0 | dev/nvidia0 | False GPUMissing | slurmlet.io/gpu=7 | /dev/nvidia0
typed slices, and the card's file is gone | gpu:1g.5gb:7 | nvidia | slices of /dev/nvidia0 | dev/nvidia0 | False GPUMissing | nvidia.com/mig-1g.5gb=7 | /dev/nvidia0
only files of slices | gpu:7 | nvidia | slices of none | | Unknown GPUSlicesCounted | slurmlet.io/gpu=7 |
only files of slices, all destroyed | gpu:7 | nvidia | slices of none | CAPS/gpu0/mig | Unknown GPUSlicesCounted | nvidia.com/gpu=7 |
[a100-two-one-mig]
a card and slices | gpu:a100:1,gpu:a100_1g.5gb:7 | nvidia | | | True AllGPUsPresent | nvidia.com/gpu=1,nvidia.com/mig-1g.5gb=7 |
a card and slices, untyped | gpu:8 | nvidia | | | Unknown GPUSlicesCounted | slurmlet.io/gpu=8 | 2 cards, 1 divided
a card and slices, untyped, by files | gpu:8 | nvidia | slices of /dev/nvidia1;/dev/nvidia0 | | True AllGPUsPresent | slurmlet.io/gpu=8 |
a card and slices, untyped, by files, the card gone | gpu:8 | nvidia | slices of /dev/nvidia1;/dev/nvidia0 | dev/nvidia0 | False GPUMissing | slurmlet.io/gpu=8 | /dev/nvidia0
the whole card is gone | gpu:a100:1,gpu:a100_1g.5gb:7 | nvidia | | PCI/0000:17:00.0 | False GPUMissing | nvidia.com/gpu=1,nvidia.com/mig-1g.5gb=7 | 1 GPU and MIG slices of at least 1 more & /dev/nvidia0
the divided card is gone | gpu:a100:1,gpu:a100_1g.5gb:7 | nvidia | | PCI/0000:86:00.0 | False GPUMissing | nvidia.com/gpu=1,nvidia.com/mig-1g.5gb=7 | the machine has 1: & not on the PCI bus
the slices are destroyed | gpu:a100:1,gpu:a100_1g.5gb:7 | nvidia | | CAPS/gpu1 | True AllGPUsPresent | nvidia.com/gpu=1,nvidia.com/mig-1g.5gb=7 |
[h100-eight-one-mig]
seven cards and slices | gpu:h100:7,gpu:h100_1g.5gb:7 | nvidia | | | True AllGPUsPresent | nvidia.com/gpu=7,nvidia.com/mig-1g.5gb=7 | 7 GPUs
six of seven cards, and slices | gpu:h100:7,gpu:h100_1g.5gb:7 | nvidia | | PCI/0000:df:00.0 | False GPUMissing | nvidia.com/gpu=7,nvidia.com/mig-1g.5gb=7 | 1 is not on the PCI bus
a card without driver, and slices | gpu:h100:7,gpu:h100_1g.5gb:7 | nvidia | | PCI/0000:9d:00.0/driver | False GPUMissing | nvidia.com/gpu=7,nvidia.com/mig-1g.5gb=7 | 0000:9d:00.0 has no driver
a card and a slice less | gpu:h100:7,gpu:h100_1g.5gb:7 | nvidia | | PCI/0000:df:00.0,CAPS/gpu0/mig/gi7 | False GPUMissing | nvidia.com/gpu=7,nvidia.com/mig-1g.5gb=7 | 1 is not on the PCI bus
more slices than types | gpu:h100:10,gpu:h100_1g.5gb:4 | nvidia | | | Unknown GPUSlicesCounted | slurmlet.io/gpu=10,nvidia.com/mig-1g.5gb=4 |
slices that Slurm does not use | gpu:h100:7 | nvidia | | | True AllGPUsPresent | nvidia.com/gpu=7 |
[h100-eight]
eight cards | gpu:8 | nvidia | | | True AllGPUsPresent | nvidia.com/gpu=8 |
cards and their shards | gpu:h100:8:0-1,shard:h100:64,mps:800 | nvidia | | | True AllGPUsPresent | nvidia.com/gpu=8 | 8 GPUs
seven of eight cards | gpu:8 | nvidia | | PCI/0000:9d:00.0,dev/nvidia4 | False GPUMissing | nvidia.com/gpu=8 | /dev/nvidia4
seven of eight cards, by files in pairs | gpu:4 | nvidia | /dev/nvidia0,/dev/nvidia1;/dev/nvidia2,/dev/nvidia3;/dev/nvidia4,/dev/nvidia5;/dev/nvidia6,/dev/nvidia7 | dev/nvidia4 | False GPUMissing | nvidia.com/gpu=4 | the machine has 3: & /dev/nvidia4
seven of eight cards, one of them by its file | gpu:8 | nvidia | /dev/nvidia0 | PCI/0000:df:00.0 | False GPUMissing | nvidia.com/gpu=8 | 1 is not on the PCI bus
[mi300x-cpx]
64 partitions | gpu:mi300x:64 | amd | | | Unknown GPUSlicesCounted | amd.com/gpu=64 | 8 cards, 8 divided
56 partitions, untyped | gpu:56 | | | | Unknown GPUSlicesCounted | amd.com/gpu=56 |
partitions of seven cards | gpu:64 | amd | | PCI/0000:05:00.0 | Unknown GPUSlicesCounted | amd.com/gpu=64 | 7 cards
partitions, and all cards gone | gpu:64 | amd | | PCI | Unknown GPUsUnreadable | amd.com/gpu=64 |
[mi300x-spx]
eight cards in SPX mode | gpu:mi300x:8 | amd | | | True AllGPUsPresent | amd.com/gpu=8 | 8 GPUs
seven cards in SPX mode | gpu:8 | amd | | PCI/0000:05:00.0 | False GPUMissing | amd.com/gpu=8 | 1 is not on the PCI bus
[mixed]
each vendor's type | gpu:a100:2,gpu:mi210:4 | nvidia | | | True AllGPUsPresent | nvidia.com/gpu=2,amd.com/gpu=4 | 6 GPUs
an NVIDIA card is gone | gpu:a100:2,gpu:mi210:4 | nvidia | | PCI/0000:17:00.0 | False GPUMissing | nvidia.com/gpu=2,amd.com/gpu=4 | expects 2 GPUs, the machine has 1
an AMD card is gone, which nothing detects | gpu:a100:2,gpu:mi210:4 | nvidia | | PCI/0000:05:00.0 | Unknown GPUDevicesUnspecified | nvidia.com/gpu=2,amd.com/gpu=4 | expects 4 GPUs
untyped, AMD's by their files | gpu:6 | | /dev/dri/renderD128;/dev/dri/renderD129;/dev/dri/renderD130;/dev/dri/renderD131 | | Unknown GPUDevicesUnspecified | slurmlet.io/gpu=6 | expects 6 GPUs
an AMD card's file is gone | gpu:6 | | /dev/dri/renderD128;/dev/dri/renderD129;/dev/dri/renderD130;/dev/dri/renderD131 | dev/dri/renderD130 | False GPUMissing | slurmlet.io/gpu=6 | /dev/dri/renderD130
GPUs of Intel | gpu:6 | intel | | | Unknown GPUDevicesUnspecified | gpu.intel.com/i915=6 | AutoDetect=
)";

std::vector<std::string> items(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (const auto item : split(text, separator)) {
    if (!trim(item).empty()) {
      out.emplace_back(trim(item));
    }
  }
  return out;
}

// "A,B;C": two of one GPU, and one; "slices of CARD": seven, with the card's file or without.
std::vector<Names> files_of(const std::string& text) {
  constexpr std::string_view kSlices = "slices of ";
  std::vector<Names> out;
  for (const auto& group : items(text, ';')) {
    if (!group.starts_with(kSlices)) {
      out.push_back(items(group, ','));
      continue;
    }
    for (int i = 0; i < 7; ++i) {
      out.emplace_back();
      if (const auto card = group.substr(kSlices.size()); card != "none") {
        out.back().push_back(card);
      }
      out.back().push_back("/dev/nvidia-caps/nvidia-cap" + std::to_string(66 + 9 * i));
      out.back().push_back("/dev/nvidia-caps/nvidia-cap" + std::to_string(67 + 9 * i));
    }
  }
  return out;
}

std::string path_of(const std::string& item) {
  const std::pair<std::string_view, std::string_view> kShort[] = {
      {"PCI", "sys/bus/pci/devices"}, {"CAPS", "proc/driver/nvidia/capabilities"}};
  for (const auto& [name, path] : kShort) {
    if (item.starts_with(name)) {
      return std::string{path} + item.substr(name.size());
    }
  }
  return item;
}

Paths paths_in(const fakes::TempTree& tree) {
  Paths paths;
  paths.proc = tree.path("proc");
  paths.sys = tree.path("sys");
  paths.dev = tree.path("dev");
  return paths;
}

void expect_row(const std::string& machine, const std::vector<std::string_view>& row) {
  fakes::TempTree tree;
  plant(machine, tree);
  for (const auto& gone : items(row[4], ',')) {
    tree.remove(path_of(gone));
  }
  node::HostFacts facts;
  facts.slurm.record.emplace().gres = node::gres_of(row[1]);
  facts.slurm_conf.gpu_vendor = trim(row[2]);
  facts.slurm_conf.gpu_files = files_of(std::string{trim(row[3])});
  auto reading = read_gpus_and_files(paths_in(tree), node::card_files(facts.slurm_conf));
  facts.machine.gpus = reading.gpus;
  facts.machine.missing_gpu_files = reading.missing_files;
  facts.machine.gpus_by_pci_vendor = count_gpus_by_vendor(paths_in(tree));

  const auto condition = node::gpu_condition(facts);
  ASSERT_TRUE(condition);
  EXPECT_EQ(condition->status + " " + condition->reason, trim(row[5])) << condition->message;
  for (const auto& words : items(row[7], '&')) {
    EXPECT_THAT(condition->message, ::testing::HasSubstr(words));
  }
  Names published;
  const node::Resources resources = node::resources(facts, {});
  for (const auto& name : resources.gpus) {
    published.push_back(name + "=" + resources.capacity.at(name));
  }
  EXPECT_THAT(published, ::testing::UnorderedElementsAreArray(items(row[6], ',')));
}

TEST(GpuTreesTest, DistinguishesCardsAndSlices) {
  std::string machine;
  int rows = 0;
  for (const auto line : split(kTable, '\n')) {
    SCOPED_TRACE(line);
    const auto row = split(line, '|');
    if (line.starts_with('[')) {
      machine = line.substr(1, line.size() - 2);
    } else if (row.size() > 1) {
      ASSERT_EQ(row.size(), 8U);
      expect_row(machine, row);
      ++rows;
    }
  }
  EXPECT_GT(rows, 40);
}

TEST(GpuTreesTest, HowManySlicesACardHas) {
  const std::string mig = "proc/driver/nvidia/capabilities/gpu0/mig";
  const std::string mode = "sys/bus/pci/devices/0000:05:00.0/current_compute_partition";
  const std::vector<std::tuple<std::string, std::string, const char*, std::optional<int>>> cases{
      {"a100-mig", "none", nullptr, 7},
      {"h100-eight", "none", nullptr, 0},
      {"a100-mig", "proc/driver/nvidia/capabilities", nullptr, 0},  // a driver before 450
      {"a100-mig", mig + "/gi7/ci1/access", "", 8},                 // shared by two
      {"a100-mig", mig + "/gi7/ci0", nullptr, 7},  // not usable, but not a whole card either
      {"a100-mig", mig + "/gist", "", 7},
      {"a100-mig", "proc/driver/nvidia/gpus", nullptr, std::nullopt},  // its directory is unknown
      {"h100-eight", "proc/driver/nvidia/capabilities/gpu1/mig/gi1/ci0/access", "", 0},
      {"mi300x-spx", "none", nullptr, 0},
      {"mi300x-cpx", "none", nullptr, std::nullopt},
      {"mi300x-cpx", mode, nullptr, 0},  // a model without partitions
      {"mi300x-cpx", mode, "QPX\n", std::nullopt},
      {"mi300x-cpx", mode, "UNKNOWN\n", std::nullopt},
      {"mi300x-cpx", mode, "", std::nullopt},  // unreadable in a reset
      {"mi300x-cpx", mode, "spx\n", 0},
  };
  for (const auto& [name, path, content, slices] : cases) {
    fakes::TempTree tree;
    plant(name, tree);
    if (content == nullptr) {
      tree.remove(path);
    } else {
      tree.file(path, content);
    }
    const auto gpus = read_gpus(paths_in(tree));
    ASSERT_TRUE(gpus && !gpus->empty());
    EXPECT_EQ(gpus->front().slices, slices) << name << " " << path;
  }
}

}  // namespace gpu_trees_test
}  // namespace slurmlet::host
