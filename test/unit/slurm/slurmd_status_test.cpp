#include "slurm/answers/slurmd_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "utc_test.h"

namespace slurmlet::slurm {
namespace slurmd_status_test {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kBusy =
    "Active Steps             = 2.0, 2\n"
    "Actual CPUs              = 2\n"
    "Actual Boards            = 1\n"
    "Actual sockets           = 1\n"
    "Actual cores             = 2\n"
    "Actual threads per core  = 1\n"
    "Actual real memory       = 24105 MB\n"
    "Actual temp disk space   = 258019 MB\n"
    "Boot time                = 2026-11-20T23:08:30\n"
    "Hostname                 = cpu02\n"
    "Last slurmctld msg time  = 2026-11-20T23:08:40\n"
    "Slurmd PID               = 22419\n"
    "Slurmd Debug             = 3\n"
    "Slurmd Logfile           = /var/log/slurmd.cpu02.log\n"
    "Version                  = 25.11.8-0pre1\n";

std::string with(const std::string& from, const std::string& to) {
  std::string text = kBusy;
  return text.replace(text.find(from), from.size(), to);
}

class SlurmdStatusText : public UtcTest {};

TEST_F(SlurmdStatusText, ReadsEveryLine) {
  ASSERT_TRUE(looks_like_slurmd_status(kBusy));
  const auto status = parse_slurmd_status(kBusy);
  EXPECT_THAT(status.active_steps, ElementsAre("2.0", "2"));
  EXPECT_EQ(status.node_name, "cpu02");
  EXPECT_EQ(status.version, "25.11.8-0pre1");
  EXPECT_THAT(status.not_understood, IsEmpty());
}

TEST_F(SlurmdStatusText, NoneIsNothing) {
  EXPECT_THAT(parse_slurmd_status(with("2.0, 2", "NONE")).active_steps, IsEmpty());
}

TEST_F(SlurmdStatusText, NamesWhatItDoesNotUnderstand) {
  const auto status = parse_slurmd_status(with("22419", "many") + "Mood = good\nnoise\n");
  EXPECT_THAT(status.not_understood, ElementsAre("Mood = good", "noise"));
}

TEST_F(SlurmdStatusText, ACutOffAnswerNeverTellsAnythingElse) {
  const auto whole = parse_slurmd_status(kBusy);
  for (std::size_t size = 0; size < kBusy.find("Version"); ++size) {
    const auto part = parse_slurmd_status(kBusy.substr(0, size));
    EXPECT_THAT(part.not_understood, Contains("the answer is not complete")) << size;
    EXPECT_TRUE(part.node_name.empty() || part.node_name == whole.node_name) << size;
    EXPECT_TRUE(part.active_steps.empty() || part.active_steps == whole.active_steps) << size;
  }
}

TEST_F(SlurmdStatusText, OtherTextIsNoStatus) {
  for (const char* text : {"", "idle\n", "Version = 1\nHostname = x\n", "SlurmdDebug = 3\n",
                           "Actual CPUs = 2\n", "NodeName=n1 CoresPerSocket=8\n"}) {
    EXPECT_FALSE(looks_like_slurmd_status(text)) << text;
  }
}

}  // namespace slurmd_status_test
}  // namespace slurmlet::slurm
