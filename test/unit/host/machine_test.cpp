#include "host/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"
#include "host/gpus.h"

namespace slurmlet::host {
namespace machine_test {

using ::testing::ElementsAre;
using ::testing::Pair;

Paths paths_in(const fakes::TempTree& tree) {
  return {tree.path("proc"),    tree.path("sys"), tree.path("etc"),
          tree.path("usr/lib"), tree.path("run"), tree.path("state")};
}

TEST(ReadMachine, ReadsTheTree) {
  fakes::TempTree tree;
  tree.file("proc/sys/kernel/hostname", "node0042\n")
      .file("proc/sys/kernel/osrelease", "5.14.0-427.13.1.el9_4.x86_64\n")
      .file("proc/sys/kernel/random/boot_id", "7b1b6c0c-58f1-4b9b-8ef5-6bd1e4a3d5a2\n")
      .file("proc/meminfo", "MemTotal:       527832220 kB\nMemFree:        500000000 kB\n")
      .file("etc/machine-id", "0f5ee6f9d3a94b3d8f7a3c5d1a2b3c4d\n")
      .file("etc/os-release", "NAME=\"Rocky Linux\"\nPRETTY_NAME=\"Rocky Linux 9.4\"\n")
      .file("sys/devices/system/cpu/online", "0-127\n")
      .dir("state");
  const auto facts = read_machine(paths_in(tree));
  EXPECT_EQ(facts.hostname, "node0042");
  EXPECT_EQ(facts.kernel_version, "5.14.0-427.13.1.el9_4.x86_64");
  EXPECT_EQ(facts.boot_id, "7b1b6c0c-58f1-4b9b-8ef5-6bd1e4a3d5a2");
  EXPECT_EQ(facts.memory_bytes, 527832220LL * 1024);
  EXPECT_EQ(facts.machine_id, "0f5ee6f9d3a94b3d8f7a3c5d1a2b3c4d");
  EXPECT_EQ(facts.os_image, "Rocky Linux 9.4");
  EXPECT_EQ(facts.cpus, 128);
  EXPECT_FALSE(facts.architecture.empty());
  EXPECT_FALSE(facts.memory_pressure || facts.disk_pressure || facts.pid_pressure);
}

TEST(ReadMachine, WhatCannotBeReadIsMissing) {
  fakes::TempTree tree;
  auto facts = read_machine(paths_in(tree));
  EXPECT_EQ(facts.hostname, "");
  EXPECT_EQ(facts.os_image, "");
  EXPECT_EQ(facts.cpus, std::nullopt);
  EXPECT_EQ(facts.memory_bytes, std::nullopt);
  EXPECT_TRUE(facts.gpus_by_pci_vendor.empty());
  tree.file("etc/machine-id", "uninitialized\n")  // an image's
      .file("usr/lib/os-release", "PRETTY_NAME='Debian GNU/Linux 12 (bookworm)'\n");
  facts = read_machine(paths_in(tree));
  EXPECT_EQ(facts.machine_id, "");
  EXPECT_EQ(facts.os_image, "Debian GNU/Linux 12 (bookworm)");
  tree.file("etc/os-release", "NAME=x\n");
  EXPECT_EQ(read_machine(paths_in(tree)).os_image, "Linux");
}

TEST(PrettyName, UnquotesAsAShellWould) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"PRETTY_NAME=\"A \\\"B\\\" \\$C\"", "A \"B\" $C"},
      {"PRETTY_NAME='A \\B'", "A \\B"},
      {"PRETTY_NAME=Plain", "Plain"},
      {"PRETTY_NAME=one\nPRETTY_NAME=two\n", "two"},
      {"PRETTY_NAME=\"", "\""},
      {"PRETTY_NAME=", ""},
      {"XPRETTY_NAME=x\n# PRETTY_NAME=y", ""},
  };
  for (const auto& [text, want] : cases) {
    EXPECT_EQ(pretty_name(text), want) << text;
  }
}

TEST(Goarch, NamesAsGoDoes) {
  EXPECT_EQ(goarch("x86_64"), "amd64");
  EXPECT_EQ(goarch("aarch64"), "arm64");
  EXPECT_EQ(goarch("ppc64le"), "ppc64le");
  EXPECT_EQ(goarch("sparc64"), "sparc64");
}

TEST(CountGpus, CountsPhysicalDisplayAndAcceleratorDevicesByVendor) {
  fakes::TempTree tree;
  const auto device = [&](const std::string& name, const char* pci_class, const char* vendor) {
    tree.file("sys/bus/pci/devices/" + name + "/class", pci_class);
    tree.file("sys/bus/pci/devices/" + name + "/vendor", vendor);
  };
  device("0000:03:00.0", "0x030000\n", "0x1a03\n");  // BMC
  device("0000:17:00.0", "0x030200\n", "0x10de\n");
  device("0000:65:00.0", "0x030200\n", "0x10DE\n");
  device("0000:65:00.1", "0x030200\n", "0x10de\n");  // a virtual function, below
  device("0000:85:00.0", "0x120000\n", "0x1002\n");
  device("0000:86:00.0", "0x038000\n", "0x8086\n");
  device("0000:00:1f.0", "0x060100\n", "0x8086\n");
  tree.symlink("../0000:65:00.0", "sys/bus/pci/devices/0000:65:00.1/physfn");
  EXPECT_THAT(count_gpus_by_vendor(paths_in(tree)),
              ElementsAre(Pair("1002", 1), Pair("10de", 2), Pair("1a03", 1), Pair("8086", 1)));
}

TEST(ReadMachine, RunsOnThisMachine) {
  const auto facts = read_machine({});
  EXPECT_FALSE(facts.hostname.empty());
  EXPECT_FALSE(facts.kernel_version.empty());
  EXPECT_GT(facts.cpus.value_or(0), 0);
  EXPECT_GT(facts.memory_bytes.value_or(0), 0);
}

}  // namespace machine_test
}  // namespace slurmlet::host
