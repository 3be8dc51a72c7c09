#include "operator/machines/shown_jobs.h"

#include <gtest/gtest.h>

namespace slurmlet::op {
namespace shown_jobs_test {

using std::chrono::seconds;

CommandOutput config(const std::string& private_data) {
  CommandOutput out;
  out.out = "Configuration data\nPrivateData             = " + private_data +
            "\nSlurmUser               = slurm(64030)\n";
  return out;
}

CommandOutput level(const std::string& text) {
  CommandOutput out;
  out.out = text + "\n";
  return out;
}

ShownJobs of(std::uint32_t uid) { return {{}, {"me", uid}}; }

TEST(ShownJobs, AreKnownForAMinute) {
  auto shown = of(1000);
  SteadyTime now{seconds{1000}};
  ASSERT_TRUE(shown.query(now));
  EXPECT_TRUE(shown.take(now, config("none")));
  EXPECT_FALSE(shown.query(now + seconds{59}));
  ASSERT_TRUE(shown.query(now + seconds{60}));
  // PrivateData was set meanwhile.
  now += seconds{60};
  EXPECT_TRUE(shown.take(now, config("jobs")));  // AdminLevel is next
  ASSERT_TRUE(shown.query(now));
  EXPECT_FALSE(shown.take(now, level("None")));
  EXPECT_NE(shown.problem(), "");
  EXPECT_TRUE(shown.query(now)) << "it may be given at any time";
}

TEST(ShownJobs, ByWhoAsks) {
  const SteadyTime now{seconds{1000}};
  for (const std::uint32_t all : {0U, 64030U}) {
    auto shown = of(all);
    (void)shown.query(now);
    EXPECT_TRUE(shown.take(now, config("jobs")));
    EXPECT_FALSE(shown.query(now)) << all;
  }
  auto admin = of(1000);
  (void)admin.query(now);
  EXPECT_TRUE(admin.take(now, config("jobs,nodes")));
  (void)admin.query(now);
  EXPECT_TRUE(admin.take(now, level("Operator")));
  EXPECT_FALSE(admin.query(now));
}

TEST(ShownJobs, NoAnswerIsNotThatAllAreShown) {
  const SteadyTime now{seconds{1000}};
  auto shown = of(0);
  (void)shown.query(now);
  CommandOutput failed;
  failed.exit_code = 1;
  failed.err = "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)";
  EXPECT_FALSE(shown.take(now, failed));
  EXPECT_NE(shown.problem(), "");
  EXPECT_TRUE(shown.query(now));
}

}  // namespace shown_jobs_test
}  // namespace slurmlet::op
