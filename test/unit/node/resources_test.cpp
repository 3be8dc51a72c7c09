#include "node/resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"
#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::IsSupersetOf;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(ResourcesTest, AGoodDay) {
  const Resources out = resources(good_facts(), policy_for("n1"));
  EXPECT_THAT(out.capacity,
              UnorderedElementsAre(Pair("cpu", "128"), Pair("memory", "528163620Ki"),
                                   Pair("ephemeral-storage", "900Gi"), Pair("pods", "0")));
  EXPECT_THAT(out.allocatable,
              UnorderedElementsAre(Pair("cpu", "128"), Pair("memory", "500000Mi"),
                                   Pair("ephemeral-storage", "900Gi"), Pair("pods", "0")));
}

TEST(ResourcesTest, AMissingFactLeavesItsKeyOut) {
  HostFacts facts = good_facts();
  facts.slurm.record->gres = {{"gpu", "", 0}};
  facts.machine.memory_bytes.reset();
  const Resources out = resources(facts, policy_for("n1"));
  EXPECT_THAT(out.capacity, UnorderedElementsAre(Pair("cpu", "128"), Pair("pods", "0"),
                                                 Pair("ephemeral-storage", "900Gi")));
  EXPECT_FALSE(out.allocatable.contains("memory"));
  EXPECT_THAT(resources({}, policy_for("n1")).allocatable, UnorderedElementsAre(Pair("pods", "0")));
}

struct CpuRow {
  std::int64_t hardware;
  std::optional<std::int64_t> slurm;
  std::int64_t reserved;
  const char* allocatable;
};

TEST(ResourcesTest, CpusThatJobsMayUse) {
  const CpuRow kRows[] = {
      {128, 128, 0, "128"}, {128, 64, 0, "64"}, {128, 256, 0, "128"}, {128, std::nullopt, 0, "128"},
      {96, 96, 2, "94"},    {96, 48, 2, "46"},  {4, 4, 8, "0"},       {96, std::nullopt, 2, "94"},
  };
  for (const CpuRow& row : kRows) {
    HostFacts facts = good_facts();
    facts.machine.cpus = row.hardware;
    facts.slurm.record->cpus = row.slurm;
    facts.slurm_conf.core_spec_cpus = row.reserved;
    const Resources out = resources(facts, policy_for("n1"));
    EXPECT_EQ(out.capacity.at("cpu"), std::to_string(row.hardware));
    EXPECT_EQ(out.allocatable.at("cpu"), row.allocatable);
  }
}

TEST(ResourcesTest, WhereSlurmCountsCoresAllocatableIsInCores) {
  HostFacts facts = good_facts();
  facts.machine.cpus = 128;
  facts.slurm_conf.cpus = 64;
  facts.slurm_conf.core_spec_cpus = 2;
  facts.slurm.record->cpus = 64;
  for (const bool has_answered : {true, false}) {
    if (!has_answered) {
      facts.slurm.record.reset();
    }
    const Resources out = resources(facts, policy_for("n1"));
    EXPECT_EQ(out.allocatable.at("cpu"), "62");
    EXPECT_EQ(out.capacity.at("cpu"), "128");
  }
}

// effective_cpus is CPUEfctv: what is left without CoreSpec, by Slurm's own count.
TEST(ResourcesTest, SlurmsEffectiveCpusWin) {
  HostFacts facts = good_facts();
  facts.machine.cpus = 96;
  facts.slurm.record->cpus = 96;
  facts.slurm.record->effective_cpus = 94;
  facts.slurm_conf.core_spec_cpus = 2;
  EXPECT_EQ(resources(facts, policy_for("n1")).allocatable.at("cpu"), "94");
  facts.slurm_conf.core_spec_cpus = 8;  // slurm.conf was changed since
  EXPECT_EQ(resources(facts, policy_for("n1")).allocatable.at("cpu"), "94");
  facts.slurm.stale = true;  // what Slurm was told is not lost with slurmctld
  facts.slurm.failure = SlurmFailure::kTimeout;
  EXPECT_EQ(resources(facts, policy_for("n1")).allocatable.at("cpu"), "94");
  facts.slurm.record->effective_cpus = 200;
  EXPECT_EQ(resources(facts, policy_for("n1")).allocatable.at("cpu"), "96");
}

TEST(ResourcesTest, SlurmsMemSpecLimitWins) {
  HostFacts facts = good_facts();
  facts.machine.memory_bytes = 64 * kGiB;
  facts.slurm.record->real_memory_mib = 60000;
  facts.slurm_conf.mem_spec_limit_mib = 1000;
  facts.slurm.record->mem_spec_limit_mib = 2000;
  EXPECT_EQ(resources(facts, policy_for("n1")).allocatable.at("memory"), "58000Mi");
  facts.slurm.record->mem_spec_limit_mib = 0;
  EXPECT_EQ(resources(facts, policy_for("n1")).allocatable.at("memory"), "60000Mi");
  facts.slurm.record->mem_spec_limit_mib = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(resources(facts, policy_for("n1")).allocatable.at("memory"), "0");
  facts.slurm.record->mem_spec_limit_mib = -5;
  facts.slurm.record->real_memory_mib = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(resources(facts, policy_for("n1")).allocatable.at("memory"), "64Gi");
}

TEST(ResourcesTest, MemoryThatJobsMayUse) {
  const struct {
    std::int64_t hardware_gib;
    std::optional<std::int64_t> real_memory_mib;
    std::int64_t limit_mib;
    const char* allocatable;
  } kRows[] = {
      {64, 60000, 0, "60000Mi"},
      {64, 60000, 2000, "58000Mi"},
      {64, 1, 0, "64Gi"},  // not set in slurm.conf
      {64, std::nullopt, 0, "64Gi"},
      {64, 1, 1024, "63Gi"},
      {64, 100000, 0, "64Gi"},  // more than there is
      {1, 512, 1024, "0"},
  };
  for (const auto& row : kRows) {
    HostFacts facts = good_facts();
    facts.machine.memory_bytes = row.hardware_gib * kGiB;
    facts.slurm.record->real_memory_mib = row.real_memory_mib;
    facts.slurm_conf.mem_spec_limit_mib = row.limit_mib;
    const Resources out = resources(facts, policy_for("n1"));
    EXPECT_EQ(out.capacity.at("memory"), std::to_string(row.hardware_gib) + "Gi");
    EXPECT_EQ(out.allocatable.at("memory"), row.allocatable);
  }
}

// The API server shows quantities in their canonical form; any other would look like a change at
// every comparison and be written for ever.
TEST(ResourcesTest, QuantitiesAreCanonical) {
  struct Row {
    std::int64_t bytes;
    const char* quantity;
  };
  const Row kRows[] = {
      {24684096LL * 1024, "24684096Ki"},
      {22214656LL * 1024, "21694Mi"},
      {512LL * kGiB, "512Gi"},
      {1024LL * kGiB, "1Ti"},
      {1023, "0"},
      {1025, "1Ki"},
  };
  for (const Row& row : kRows) {
    HostFacts facts = good_facts();
    facts.machine.ephemeral_storage_bytes = row.bytes;
    EXPECT_EQ(resources(facts, policy_for("n1")).capacity.at("ephemeral-storage"), row.quantity);
  }
  HostFacts facts = good_facts();
  facts.machine.cpus = 2000;
  EXPECT_EQ(resources(facts, policy_for("n1")).capacity.at("cpu"), "2k");
}

TEST(ResourcesTest, GpusAddUpByResourceAndOtherGresDoNotCount) {
  HostFacts facts = good_facts();
  facts.slurm.record->gres = {
      {"gpu", "h200", 2},        {"gpu", "h100", 1}, {"gpu", "h200_3g.71gb", 6},
      {"shard", "h200", 16},     {"nic", "", 4},     {"gpu", "h200_1g.18gb", 1},
      {"gpu", "h200_3g.71gb", 1}};
  const Resources out = resources(facts, policy_for("n1"));
  const std::map<std::string, std::string> gpus{
      {"nvidia.com/gpu", "3"}, {"nvidia.com/mig-3g.71gb", "7"}, {"nvidia.com/mig-1g.18gb", "1"}};
  EXPECT_THAT(out.capacity, IsSupersetOf(gpus));
  EXPECT_THAT(out.allocatable, IsSupersetOf(gpus));
  EXPECT_EQ(out.capacity.size(), 4U + gpus.size());
  EXPECT_THAT(out.gpus, ::testing::ElementsAre("nvidia.com/gpu", "nvidia.com/mig-1g.18gb",
                                               "nvidia.com/mig-3g.71gb"));
}

TEST(GpuResourceTest, ModelWords) {
  const std::pair<const char*, const char*> kRows[] = {
      {"nvidia.com/gpu", "a100 A100 a10 l40s h200 tesla_v100 nvidia_a100-sxm4-80gb a100-40gb 1080"},
      {"amd.com/gpu", "mi300x mi250 amd_instinct_mi210"},
      {"gpu.intel.com/i915", "pvc max1550"},
      {"slurmlet.io/gpu", " mini mi big a100x9 (null)"},
      {"nvidia.com/mig-3g.71gb", "h200_3g.71gb"},
      {"nvidia.com/mig-1g.5gb", "a100_1g.5gb a100-1g.5gb 1g.5gb A100_1G.5GB"},
      {"nvidia.com/mig-2g.10gb", "nvidia_a100-sxm4-40gb_2g.10gb"},
      {"nvidia.com/mig-1g.10gb", "nvidia_a100_80gb_pcie_1g.10gb"},
      // some of an instance's compute slices, and attributes
      {"nvidia.com/mig-1c.3g.20gb", "a100_1c.3g.20gb"},
      {"nvidia.com/mig-1g.10gb.me", "a100_1g.10gb+me 1g.10gb.me"},
      {"nvidia.com/mig-1g.24gb-me", "rtx_pro_6000_1g.24gb-me"},
      {"nvidia.com/mig-2g.48gb.me.all", "rtx_pro_6000_2g.48gb+me.all"},
      // nearly slices
      {"nvidia.com/gpu",
       "a100_g.5gb a100_1g.gb a100_xg.5gb a100_1g. a100_1g.5gb+ a100_1g.5gb+me. a100_1g.5gbx "
       "a100_c.1g.5gb a100-40gb a100_"}};
  for (const auto& [resource, types] : kRows) {
    for (const auto type : split(types, ' ')) {
      EXPECT_EQ(gpu_resource({"gpu", std::string{type}, 1}, good_facts(), policy_for("n1")),
                resource)
          << type;
    }
  }
}

// The best evidence first: configuration, gres.conf, PCI, model word.
TEST(GpuResourceTest, OrderOfEvidence) {
  const Gres gres{"gpu", "a100", 4};
  HostFacts facts = good_facts();
  NodePolicy policy = policy_for("n1");
  EXPECT_EQ(gpu_resource(gres, facts, policy), "nvidia.com/gpu");
  facts.machine.gpus_by_pci_vendor = {{"8086", 1}};  // the console says nothing about an a100
  EXPECT_EQ(gpu_resource(gres, facts, policy), "nvidia.com/gpu");
  EXPECT_EQ(gpu_resource({"gpu", "", 4}, facts, policy), "gpu.intel.com/i915");
  facts.machine.gpus_by_pci_vendor = {{"1002", 4}};
  EXPECT_EQ(gpu_resource(gres, facts, policy), "amd.com/gpu");
  facts.slurm_conf.gpu_vendor = "amd";
  EXPECT_EQ(gpu_resource(gres, facts, policy), "amd.com/gpu");
  policy.gpu_resources = {{"gpu", "example.org/any"}};
  EXPECT_EQ(gpu_resource(gres, facts, policy), "example.org/any");
  policy.gpu_resources["gpu:a100"] = "example.org/a100";
  EXPECT_EQ(gpu_resource(gres, facts, policy), "example.org/a100");
  EXPECT_EQ(gpu_resource({"gpu", "h100", 1}, facts, policy), "example.org/any");
  EXPECT_EQ(gpu_resource({"gpu", "", 1}, facts, policy), "example.org/any");
}

TEST(GpuResourceTest, PciVendors) {
  struct Row {
    std::map<std::string, int> vendors;
    const char* resource;
  };
  const Row kRows[] = {
      {{{"10de", 4}}, "nvidia.com/gpu"},
      {{{"1002", 8}}, "amd.com/gpu"},
      {{{"8086", 6}}, "gpu.intel.com/i915"},
      {{{"10de", 4}, {"8086", 1}}, "nvidia.com/gpu"},  // the console
      {{{"1002", 4}, {"8086", 1}}, "amd.com/gpu"},
      {{{"10de", 4}, {"1002", 1}}, "slurmlet.io/gpu"},  // undecided: no guess
      {{{"10de", 0}, {"1002", 1}}, "amd.com/gpu"},
      {{{"1a03", 1}}, "slurmlet.io/gpu"},  // a server's own graphics chip
      {{}, "slurmlet.io/gpu"},
  };
  for (const Row& row : kRows) {
    HostFacts facts = good_facts();
    facts.machine.gpus_by_pci_vendor = row.vendors;
    EXPECT_EQ(gpu_resource({"gpu", "", 4}, facts, policy_for("n1")), row.resource);
  }
}

TEST(GpuResourceTest, OnMixedMachinesTheModelWordDecides) {
  HostFacts facts = good_facts();
  facts.machine.gpus_by_pci_vendor = {{"10de", 2}, {"1002", 2}};
  EXPECT_EQ(gpu_resource({"gpu", "mi300x", 2}, facts, policy_for("n1")), "amd.com/gpu");
  EXPECT_EQ(gpu_resource({"gpu", "h100", 2}, facts, policy_for("n1")), "nvidia.com/gpu");
  facts.slurm_conf.gpu_vendor = "nvidia";  // AutoDetect=nvml finds no other
  EXPECT_EQ(gpu_resource({"gpu", "mi300x", 2}, facts, policy_for("n1")), "amd.com/gpu");
  EXPECT_EQ(gpu_resource({"gpu", "", 2}, facts, policy_for("n1")), "nvidia.com/gpu");
}

// A setting wins, and an untyped number that includes slices has no vendor's name.
TEST(GpuResourceTest, SlicesThatNoTypeTells) {
  HostFacts facts = good_facts();
  facts.slurm.record->gres = {{"gpu", "", 7}};
  facts.machine.gpus = {{"0000:17:00.0", "nvidia", "/dev/nvidia0", true, 7}};
  facts.machine.gpus_by_pci_vendor = {{"10de", 1}};
  NodePolicy policy = policy_for("n1");
  const Gres& gres = facts.slurm.record->gres.front();
  EXPECT_EQ(gpu_resource(gres, facts, policy), "slurmlet.io/gpu");
  policy.gpu_resources = {{"gpu", "nvidia.com/mig-1g.5gb"}};
  EXPECT_EQ(gpu_resource(gres, facts, policy), "nvidia.com/mig-1g.5gb");
  policy.gpu_resources.clear();
  facts.machine.gpus.reset();  // not read yet
  EXPECT_EQ(gpu_resource(gres, facts, policy), "nvidia.com/gpu");
}

}  // namespace
}  // namespace slurmlet::node
