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

struct Row {
  const char* what;
  const char* tree;
  std::vector<node::Gres> gres;
  const char* vendor;                // by gres.conf
  std::vector<Names> files;          // GPU files in gres.conf
  Names gone;                        // files missing in the tree
  const char* verdict;               // status and reason
  const char* message;               // substring
  std::map<std::string, int> slurm;  // GPU resources
};

const std::string kPci = "sys/bus/pci/devices/";
const char kOfA100[] = "sys/bus/pci/devices/0000:17:00.0";

std::vector<Names> slices_of(const std::string& card, int count) {
  std::vector<Names> out;
  for (int i = 0; i < count; ++i) {
    out.push_back({card, "/dev/nvidia-caps/nvidia-cap" + std::to_string(66 + 9 * i),
                   "/dev/nvidia-caps/nvidia-cap" + std::to_string(67 + 9 * i)});
  }
  return out;
}

std::vector<Names> only_caps() {
  std::vector<Names> out;
  for (auto& files : slices_of("", 7)) {
    out.push_back({files[1]});
  }
  return out;
}

std::vector<Row> rows() {
  const std::map<std::string, int> kGeneric7{{"slurmlet.io/gpu", 7}};
  const std::map<std::string, int> kMixed{{"nvidia.com/gpu", 7}, {"nvidia.com/mig-1g.5gb", 7}};
  const std::vector<node::Gres> kSevenAndSlices{{"gpu", "h100", 7}, {"gpu", "h100_1g.5gb", 7}};
  auto card_and_slices = slices_of("/dev/nvidia1", 7);
  card_and_slices.push_back({"/dev/nvidia0"});
  return {
      // one card in MIG mode
      {"untyped slices",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       {},
       {},
       "Unknown GPUSlicesCounted",
       "the machine has 1 card, 1 divided into slices (MIG)",
       kGeneric7},
      {"slices that bear the card's type",
       "a100-mig",
       {{"gpu", "a100", 7}},
       "nvidia",
       {},
       {},
       "Unknown GPUSlicesCounted",
       "",
       kGeneric7},
      {"untyped, without AutoDetect",
       "a100-mig",
       {{"gpu", "", 7}},
       "",
       {},
       {},
       "Unknown GPUSlicesCounted",
       "",
       kGeneric7},
      {"a slice was destroyed",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       {},
       {"proc/driver/nvidia/capabilities/gpu0/mig/gi7"},
       "Unknown GPUSlicesCounted",
       "",
       kGeneric7},
      {"an instance that nothing can use yet",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       {},
       {"proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0"},
       "Unknown GPUSlicesCounted",
       "",
       kGeneric7},
      {"the card is gone",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       {},
       {kOfA100, "proc/driver/nvidia/gpus"},
       "False GPUMissing",
       "not on the PCI bus",
       {{"nvidia.com/gpu", 7}}},
      {"typed slices",
       "a100-mig",
       {{"gpu", "a100_1g.5gb", 7}},
       "nvidia",
       {},
       {},
       "Unknown OnlyGPUSlices",
       "",
       {{"nvidia.com/mig-1g.5gb", 7}}},
      {"typed slices and no card",
       "a100-mig",
       {{"gpu", "a100_1g.5gb", 7}},
       "nvidia",
       {},
       {kOfA100, "proc/driver/nvidia/gpus"},
       "False GPUMissing",
       "Slurm expects MIG slices of at least 1 GPU, the machine has 0: 1 is not on the PCI bus",
       {{"nvidia.com/mig-1g.5gb", 7}}},
      {"untyped slices with their files",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       slices_of("/dev/nvidia0", 7),
       {},
       "True AllGPUsPresent",
       "all cards",
       kGeneric7},
      {"a slice's file is gone",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       slices_of("/dev/nvidia0", 7),
       {"dev/nvidia-caps/nvidia-cap66"},
       "True AllGPUsPresent",
       "",
       kGeneric7},
      {"the card's file is gone",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       slices_of("/dev/nvidia0", 7),
       {"dev/nvidia0"},
       "False GPUMissing",
       "/dev/nvidia0 is missing",
       kGeneric7},
      {"typed slices, and the card's file is gone",
       "a100-mig",
       {{"gpu", "1g.5gb", 7}},
       "nvidia",
       slices_of("/dev/nvidia0", 7),
       {"dev/nvidia0"},
       "False GPUMissing",
       "/dev/nvidia0 is missing",
       {{"nvidia.com/mig-1g.5gb", 7}}},
      {"only files of slices",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       only_caps(),
       {},
       "Unknown GPUSlicesCounted",
       "",
       kGeneric7},
      {"only files of slices, all destroyed",
       "a100-mig",
       {{"gpu", "", 7}},
       "nvidia",
       only_caps(),
       {"proc/driver/nvidia/capabilities/gpu0/mig"},
       "Unknown GPUSlicesCounted",
       "",
       {{"nvidia.com/gpu", 7}}},

      // part of the cards in MIG mode
      {"a card and slices",
       "a100-two-one-mig",
       {{"gpu", "a100", 1}, {"gpu", "a100_1g.5gb", 7}},
       "nvidia",
       {},
       {},
       "True AllGPUsPresent",
       "the GPU that Slurm expects is present",
       {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}},
      {"a card and slices, untyped",
       "a100-two-one-mig",
       {{"gpu", "", 8}},
       "nvidia",
       {},
       {},
       "Unknown GPUSlicesCounted",
       "the machine has 2 cards, 1 divided",
       {{"slurmlet.io/gpu", 8}}},
      {"a card and slices, untyped, by files",
       "a100-two-one-mig",
       {{"gpu", "", 8}},
       "nvidia",
       card_and_slices,
       {},
       "True AllGPUsPresent",
       "",
       {{"slurmlet.io/gpu", 8}}},
      {"a card and slices, untyped, by files, the card gone",
       "a100-two-one-mig",
       {{"gpu", "", 8}},
       "nvidia",
       card_and_slices,
       {"dev/nvidia0"},
       "False GPUMissing",
       "/dev/nvidia0 is missing",
       {{"slurmlet.io/gpu", 8}}},
      {"the whole card is gone",
       "a100-two-one-mig",
       {{"gpu", "a100", 1}, {"gpu", "a100_1g.5gb", 7}},
       "nvidia",
       {},
       {kOfA100},
       "False GPUMissing",
       "Slurm expects 1 GPU and MIG slices of at least 1 more, the machine has 0 and 1 divided "
       "into slices: /dev/nvidia0 is missing",
       {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}},
      {"the divided card is gone",
       "a100-two-one-mig",
       {{"gpu", "a100", 1}, {"gpu", "a100_1g.5gb", 7}},
       "nvidia",
       {},
       {"sys/bus/pci/devices/0000:86:00.0"},
       "False GPUMissing",
       "Slurm expects 1 GPU and MIG slices of at least 1 more, the machine has 1: 1 is not on the "
       "PCI bus",
       {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}},
      {"the slices are destroyed",
       "a100-two-one-mig",
       {{"gpu", "a100", 1}, {"gpu", "a100_1g.5gb", 7}},
       "nvidia",
       {},
       {"proc/driver/nvidia/capabilities/gpu1"},
       "True AllGPUsPresent",
       "",
       {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}},
      {"seven cards and slices",
       "h100-eight-one-mig",
       kSevenAndSlices,
       "nvidia",
       {},
       {},
       "True AllGPUsPresent",
       "all 7 GPUs",
       kMixed},
      {"six of seven cards, and slices",
       "h100-eight-one-mig",
       kSevenAndSlices,
       "nvidia",
       {},
       {kPci + "0000:df:00.0"},
       "False GPUMissing",
       "1 is not on the PCI bus",
       kMixed},
      {"a card without driver, and slices",
       "h100-eight-one-mig",
       kSevenAndSlices,
       "nvidia",
       {},
       {kPci + "0000:9d:00.0/driver"},
       "False GPUMissing",
       "0000:9d:00.0 has no driver",
       kMixed},
      {"a card and a slice less",
       "h100-eight-one-mig",
       kSevenAndSlices,
       "nvidia",
       {},
       {kPci + "0000:df:00.0", "proc/driver/nvidia/capabilities/gpu0/mig/gi7"},
       "False GPUMissing",
       "1 is not on the PCI bus",
       kMixed},
      {"more slices than types",
       "h100-eight-one-mig",
       {{"gpu", "h100", 10}, {"gpu", "h100_1g.5gb", 4}},
       "nvidia",
       {},
       {},
       "Unknown GPUSlicesCounted",
       "",
       {{"slurmlet.io/gpu", 10}, {"nvidia.com/mig-1g.5gb", 4}}},
      {"slices that Slurm does not use",
       "h100-eight-one-mig",
       {{"gpu", "h100", 7}},
       "nvidia",
       {},
       {},
       "True AllGPUsPresent",
       "",
       {{"nvidia.com/gpu", 7}}},

      // no card in MIG mode
      {"eight cards",
       "h100-eight",
       {{"gpu", "", 8}},
       "nvidia",
       {},
       {},
       "True AllGPUsPresent",
       "",
       {{"nvidia.com/gpu", 8}}},
      {"cards and their shards",
       "h100-eight",
       {{"gpu", "h100", 8, "0-1"}, {"shard", "h100", 64}, {"mps", "", 800}},
       "nvidia",
       {},
       {},
       "True AllGPUsPresent",
       "all 8 GPUs",
       {{"nvidia.com/gpu", 8}}},
      {"seven of eight cards",
       "h100-eight",
       {{"gpu", "", 8}},
       "nvidia",
       {},
       {kPci + "0000:9d:00.0", "dev/nvidia4"},
       "False GPUMissing",
       "/dev/nvidia4 is missing",
       {{"nvidia.com/gpu", 8}}},
      {"seven of eight cards, by files in pairs",
       "h100-eight",
       {{"gpu", "", 4}},
       "nvidia",
       {{"/dev/nvidia0", "/dev/nvidia1"},
        {"/dev/nvidia2", "/dev/nvidia3"},
        {"/dev/nvidia4", "/dev/nvidia5"},
        {"/dev/nvidia6", "/dev/nvidia7"}},
       {"dev/nvidia4"},
       "False GPUMissing",
       "the machine has 3: /dev/nvidia4 is missing",
       {{"nvidia.com/gpu", 4}}},
      {"seven of eight cards, one of them by its file",
       "h100-eight",
       {{"gpu", "", 8}},
       "nvidia",
       {{"/dev/nvidia0"}},
       {kPci + "0000:df:00.0"},
       "False GPUMissing",
       "1 is not on the PCI bus",
       {{"nvidia.com/gpu", 8}}},

      // AMD's compute partitions
      {"64 partitions",
       "mi300x-cpx",
       {{"gpu", "mi300x", 64}},
       "amd",
       {},
       {},
       "Unknown GPUSlicesCounted",
       "the machine has 8 cards, 8 divided into slices",
       {{"amd.com/gpu", 64}}},
      {"56 partitions, untyped",
       "mi300x-cpx",
       {{"gpu", "", 56}},
       "",
       {},
       {},
       "Unknown GPUSlicesCounted",
       "",
       {{"amd.com/gpu", 56}}},
      {"partitions of seven cards",
       "mi300x-cpx",
       {{"gpu", "", 64}},
       "amd",
       {},
       {kPci + "0000:05:00.0"},
       "Unknown GPUSlicesCounted",
       "the machine has 7 cards",
       {{"amd.com/gpu", 64}}},
      {"partitions, and all cards gone",
       "mi300x-cpx",
       {{"gpu", "", 64}},
       "amd",
       {},
       {"sys/bus/pci/devices"},
       "Unknown GPUsUnreadable",
       "",
       {{"amd.com/gpu", 64}}},
      {"eight cards in SPX mode",
       "mi300x-spx",
       {{"gpu", "mi300x", 8}},
       "amd",
       {},
       {},
       "True AllGPUsPresent",
       "all 8 GPUs",
       {{"amd.com/gpu", 8}}},
      {"seven cards in SPX mode",
       "mi300x-spx",
       {{"gpu", "", 8}},
       "amd",
       {},
       {kPci + "0000:05:00.0"},
       "False GPUMissing",
       "1 is not on the PCI bus",
       {{"amd.com/gpu", 8}}},

      // two vendors in one machine
      {"each vendor's type",
       "mixed",
       {{"gpu", "a100", 2}, {"gpu", "mi210", 4}},
       "nvidia",
       {},
       {},
       "True AllGPUsPresent",
       "all 6 GPUs",
       {{"nvidia.com/gpu", 2}, {"amd.com/gpu", 4}}},
      {"an NVIDIA card is gone",
       "mixed",
       {{"gpu", "a100", 2}, {"gpu", "mi210", 4}},
       "nvidia",
       {},
       {kOfA100},
       "False GPUMissing",
       "Slurm expects 2 GPUs, the machine has 1",
       {{"nvidia.com/gpu", 2}, {"amd.com/gpu", 4}}},
      {"an AMD card is gone, which nothing detects",
       "mixed",
       {{"gpu", "a100", 2}, {"gpu", "mi210", 4}},
       "nvidia",
       {},
       {kPci + "0000:05:00.0"},
       "Unknown GPUDevicesUnspecified",
       "Slurm expects 4 GPUs",
       {{"nvidia.com/gpu", 2}, {"amd.com/gpu", 4}}},
      {"untyped, AMD's by their files",
       "mixed",
       {{"gpu", "", 6}},
       "",
       {{"/dev/dri/renderD128"},
        {"/dev/dri/renderD129"},
        {"/dev/dri/renderD130"},
        {"/dev/dri/renderD131"}},
       {},
       "Unknown GPUDevicesUnspecified",
       "Slurm expects 6 GPUs",
       {{"slurmlet.io/gpu", 6}}},
      {"an AMD card's file is gone",
       "mixed",
       {{"gpu", "", 6}},
       "",
       {{"/dev/dri/renderD128"},
        {"/dev/dri/renderD129"},
        {"/dev/dri/renderD130"},
        {"/dev/dri/renderD131"}},
       {"dev/dri/renderD130"},
       "False GPUMissing",
       "/dev/dri/renderD130 is missing",
       {{"slurmlet.io/gpu", 6}}},
      {"GPUs of Intel",
       "mixed",
       {{"gpu", "", 6}},
       "intel",
       {},
       {},
       "Unknown GPUDevicesUnspecified",
       "no AutoDetect= of NVIDIA (nvml, nvidia) or AMD (rsmi)",
       {{"gpu.intel.com/i915", 6}}},
  };
}

TEST(GpuTreesTest, DistinguishesCardsAndSlices) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.what);
    fakes::TempTree tree;
    plant(row.tree, tree);
    for (const auto& path : row.gone) {
      tree.remove(path);
    }
    Paths paths;
    paths.proc = tree.path("proc");
    paths.sys = tree.path("sys");
    paths.dev = tree.path("dev");
    node::HostFacts facts;
    facts.slurm.record.emplace().gres = row.gres;
    facts.slurm_conf.gpu_vendor = row.vendor;
    facts.slurm_conf.gpu_files = row.files;
    auto reading = read_gpus_and_files(paths, node::card_files(facts.slurm_conf));
    facts.machine.gpus = reading.gpus;
    facts.machine.missing_gpu_files = reading.missing_files;
    facts.machine.gpus_by_pci_vendor = count_gpus_by_vendor(paths);

    const auto condition = node::gpu_condition(facts);
    ASSERT_TRUE(condition);
    EXPECT_EQ(condition->status + " " + condition->reason, row.verdict) << condition->message;
    EXPECT_THAT(condition->message, ::testing::HasSubstr(row.message));
    std::map<std::string, int> published;
    const node::Resources resources = node::resources(facts, {});
    for (const auto& name : resources.gpus) {
      published[name] = parse_int<int>(resources.capacity.at(name)).value_or(-1);
    }
    EXPECT_EQ(published, row.slurm);
  }
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
    Paths paths;
    paths.proc = tree.path("proc");
    paths.sys = tree.path("sys");
    paths.dev = tree.path("dev");
    const auto gpus = read_gpus(paths);
    ASSERT_TRUE(gpus && !gpus->empty());
    EXPECT_EQ(gpus->front().slices, slices) << name << " " << path;
  }
}

}  // namespace gpu_trees_test
}  // namespace slurmlet::host
