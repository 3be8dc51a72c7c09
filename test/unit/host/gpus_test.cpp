#include "host/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fakes/temp_tree.h"
#include "host/machine.h"

namespace slurmlet::host {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class GpusTest : public testing::Test {
 protected:
  GpusTest() {
    tree_.dir("proc").dir("sys/bus/pci/devices").dir("dev");
    paths_.proc = tree_.path("proc");
    paths_.sys = tree_.path("sys");
    paths_.dev = tree_.path("dev");
  }
  void device(const std::string& address, const char* pci_class, const char* vendor,
              const std::string& driver = "") {
    const std::string directory = "sys/bus/pci/devices/" + address;
    tree_.file(directory + "/class", pci_class).file(directory + "/vendor", vendor);
    if (!driver.empty()) {
      tree_.symlink("../../../../bus/pci/drivers/" + driver, directory + "/driver");
    }
  }
  // In the format of NVIDIA's driver 535.
  void nvidia_information(const std::string& address, const std::string& minor) {
    tree_.file("proc/driver/nvidia/gpus/" + address + "/information",
               "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 203\n"
               "GPU UUID: \t GPU-5f1d3b1c-0000-0000-0000-000000000000\n"
               "Bus Location: \t " +
                   address + "\nDevice Minor: \t " + minor + "\nGPU Excluded:\t No\n");
  }

  fakes::TempTree tree_;
  Paths paths_;
};

TEST_F(GpusTest, AMachineWithoutGpusHasNoneAndAnUnreadableBusIsUnknown) {
  device("0000:00:1f.0", "0x060100\n", "0x8086\n", "lpc_ich");
  device("0000:03:00.0", "0x030000\n", "0x1a03\n", "ast");
  ASSERT_TRUE(read_gpus(paths_));
  EXPECT_THAT(*read_gpus(paths_), IsEmpty());
  tree_.remove("sys/bus");
  EXPECT_EQ(read_gpus(paths_), std::nullopt);
}

TEST_F(GpusTest, NvidiaDevicesWithTheirNumbers) {
  device("0000:86:00.0", "0x030200\n", "0x10de\n", "nvidia");
  device("0000:17:00.0", "0x030200\n", "0x10de\n", "nvidia");
  device("0000:18:00.0", "0x068000\n", "0x10de\n", "nvidia-nvswitch");  // a switch
  device("0000:19:00.0", "0x030200\n", "0x10de\n", "vfio-pci");
  device("0000:1a:00.0", "0x030000\n", "0x10de\n", "nouveau");
  device("0000:1b:00.0", "0x030200\n", "0x10DE\n");            // no driver at all
  device("0000:17:00.4", "0x030200\n", "0x10de\n", "nvidia");  // a virtual function
  tree_.symlink("../0000:17:00.0", "sys/bus/pci/devices/0000:17:00.4/physfn");
  nvidia_information("0000:17:00.0", "0");
  nvidia_information("0000:86:00.0", "1");
  tree_.file("dev/nvidia0", "");  // nvidia1 is missing
  EXPECT_EQ(*read_gpus(paths_), (std::vector<node::GpuDevice>{
                                    {"0000:17:00.0", "nvidia", "/dev/nvidia0", true},
                                    {"0000:19:00.0", "nvidia", "", false},
                                    {"0000:1a:00.0", "nvidia", "", false},
                                    {"0000:1b:00.0", "nvidia", "", false},
                                    {"0000:86:00.0", "nvidia", "", true},
                                }));
}

TEST_F(GpusTest, InvalidInformationIsNoNumber) {
  for (const char* minor : {"N/A", "", "-1", "99999999999"}) {
    device("0000:17:00.0", "0x030200\n", "0x10de\n");
    tree_.remove("sys/bus/pci/devices/0000:17:00.0/driver")
        .symlink("../../drivers/nvidia", "sys/bus/pci/devices/0000:17:00.0/driver");
    nvidia_information("0000:17:00.0", minor);
    EXPECT_EQ(read_gpus(paths_)->front().device_node, "") << minor;
    EXPECT_TRUE(read_gpus(paths_)->front().has_driver);
  }
}

TEST_F(GpusTest, AmdDevicesWithTheirRenderNodes) {
  device("0000:05:00.0", "0x120000\n", "0x1002\n", "amdgpu");  // MI300X: an accelerator
  device("0000:26:00.0", "0x038000\n", "0x1002\n", "amdgpu");
  device("0000:46:00.0", "0x038000\n", "0x1002\n", "vfio-pci");
  tree_.dir("sys/bus/pci/devices/0000:05:00.0/drm/card1")
      .dir("sys/bus/pci/devices/0000:05:00.0/drm/renderD128")
      .dir("sys/bus/pci/devices/0000:26:00.0/drm/renderD129")
      .file("dev/dri/renderD128", "");
  EXPECT_EQ(*read_gpus(paths_), (std::vector<node::GpuDevice>{
                                    {"0000:05:00.0", "amd", "/dev/dri/renderD128", true},
                                    {"0000:26:00.0", "amd", "", true},
                                    {"0000:46:00.0", "amd", "", false},
                                }));
}

TEST_F(GpusTest, MissingFilesAreThoseThatDoNotExist) {
  tree_.file("dev/nvidia0", "").file("dev/tty1", "").file("elsewhere/gpu7", "");
  tree_.symlink("tty1", "dev/nvidia1");     // a link to a device exists
  tree_.symlink("nowhere", "dev/nvidia2");  // a dangling one does not
  EXPECT_THAT(missing_files(paths_, {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3",
                                     "/dev/tty1", "/dev/nvidia0/x"}),
              ElementsAre("/dev/nvidia2", "/dev/nvidia3", "/dev/nvidia0/x"));
  const std::string elsewhere = tree_.path("elsewhere").string();
  EXPECT_THAT(missing_files(paths_, {elsewhere + "/gpu7", elsewhere + "/gpu8"}),
              ElementsAre(elsewhere + "/gpu8"));
  EXPECT_THAT(missing_files(paths_, {}), IsEmpty());
}

}  // namespace
}  // namespace slurmlet::host
