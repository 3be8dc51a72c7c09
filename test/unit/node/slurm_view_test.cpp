#include "node/slurm_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SlurmViewTest, NeverAskedAFreshAnswerAndStaleOnes) {
  HostFacts facts = good_facts();
  facts.slurm = {};
  EXPECT_EQ(slurm_view(facts).knowledge, Knowledge::kNotAskedYet);
  EXPECT_EQ(slurm_view(facts).reason, "NotQueriedYet");
  EXPECT_FALSE(slurm_view(facts).message.empty());
  facts.slurm.failure = SlurmFailure::kTimeout;
  facts.slurm_conf = {};
  EXPECT_THAT(slurm_view(facts).message, Not(HasSubstr("slurmctld ("))) << "none is known";

  facts = facts_in_state("MIXED", {"DRAIN"});
  facts.slurm.failure = SlurmFailure::kControllerUnreachable;
  EXPECT_EQ(slurm_view(facts).knowledge, Knowledge::kKnown) << "a fresh answer outlives a failure";
  EXPECT_TRUE(slurm_view(facts).is("MIXED"));
  facts.slurm.stale = true;
  EXPECT_EQ(slurm_view(facts).knowledge, Knowledge::kUnknown);
  EXPECT_EQ(slurm_view(facts).reason, "ControllerUnreachable");
  EXPECT_THAT(slurm_view(facts).message,
              AllOf(HasSubstr("slurmctld (head1:6817)"), HasSubstr("MIXED+DRAIN"),
                    HasSubstr("2026-11-20T14:02:11Z")));
  facts.slurm.failure.reset();
  EXPECT_EQ(slurm_view(facts).knowledge, Knowledge::kUnknown);
  EXPECT_EQ(slurm_view(facts).reason, "AnswerTooOld");
}

TEST(SlurmViewTest, EachFailureHasAReasonAndWords) {
  struct Row {
    SlurmFailure failure;
    const char* reason;
    const char* words;
  };
  const Row kRows[] = {
      {SlurmFailure::kControllerUnreachable, "ControllerUnreachable", "slurmctld (head1:6817)"},
      {SlurmFailure::kTimeout, "ControllerTimeout", "slurmctld (head1:6817)"},
      {SlurmFailure::kMungeUnavailable, "MungeUnavailable", "systemctl start munge"},
      {SlurmFailure::kAuthenticationRefused, "AuthenticationRefused", "/etc/munge/munge.key"},
      {SlurmFailure::kClockSkew, "ClockSkew", "timedatectl"},
      {SlurmFailure::kTokenRefused, "TokenRefused", "slurmJwtFile"},
      {SlurmFailure::kRestUnavailable, "RestUnavailable", "slurmRestURL"},
      {SlurmFailure::kRecordUnavailable, "RecordUnavailable", "slurmlet-operator"},
      {SlurmFailure::kNodeUnknown, "SlurmNodeUnknown", "NodeName"},
      {SlurmFailure::kSackUnavailable, "SackUnavailable", "start slurmd or sackd"},
      {SlurmFailure::kOtherCluster, "OtherCluster", "slurmRestURL"},
      {SlurmFailure::kFileSystemHangs, "FileSystemNotResponding", "check its mount"},
      {SlurmFailure::kPermissionDenied, "PermissionDenied", "PrivateData"},
      {SlurmFailure::kNotInSlurm, "NotInSlurm", "slurm.nodeName"},
      {SlurmFailure::kBadConfiguration, "SlurmConfInvalid", "slurm.conf"},
      {SlurmFailure::kCommandMissing, "SlurmCommandMissing", "slurm.binDir"},
      {SlurmFailure::kInvalidResponse, "AnswerNotUnderstood", "scontrol -a -d -o show node"},
      {SlurmFailure::kRateLimited, "ControllerRateLimited", "slurm.pollInterval"},
      {SlurmFailure::kOperatorRequired, "OperatorRequired", "run slurmlet-operator"},
  };
  for (const Row& row : kRows) {
    HostFacts facts = good_facts();
    facts.slurm = {};
    facts.slurm.failure = row.failure;
    facts.slurm.failure_detail = "Slurm's own text";
    const SlurmView view = slurm_view(facts);
    EXPECT_EQ(view.knowledge, Knowledge::kUnknown) << row.reason;
    EXPECT_EQ(view.reason, row.reason);
    EXPECT_THAT(view.message, AllOf(HasSubstr(row.words), HasSubstr("Slurm's own text"),
                                    Not(HasSubstr("last answer"))));
  }
}

LocalJobs one_job(std::optional<std::int64_t> cpus = std::nullopt) { return {1, cpus, {}, {7}}; }

// Slurm's base state is shown as it is, whatever runs here, but for IDLE.
TEST(SlurmViewTest, TheAnswerIsShownAsItIs) {
  struct Row {
    const char* base;
    std::set<std::string> flags;
    std::optional<LocalJobs> jobs;
    bool in_use;
  };
  const Row kRows[] = {
      {"IDLE", {}, std::nullopt, false},
      {"IDLE", {}, LocalJobs{}, false},
      {"IDLE", {"DRAIN"}, LocalJobs{}, false},
      {"IDLE", {"DRAIN"}, one_job(8), true},  // which starts no jobs
      {"IDLE", {"COMPLETING"}, LocalJobs{}, true},
      {"IDLE", {"COMPLETING"}, one_job(8), true},
      {"DOWN", {}, LocalJobs{}, false},
      {"DOWN", {}, one_job(8), true},
      {"DOWN", {"COMPLETING"}, LocalJobs{}, true},
      {"UNKNOWN", {}, LocalJobs{}, false},
      {"MIXED", {}, LocalJobs{}, true},  // an salloc without steps
      {"MIXED", {"DRAIN"}, std::nullopt, true},
      {"MIXED", {}, one_job(128), true},
      {"ALLOCATED", {}, LocalJobs{}, true},
      {"ALLOCATED", {"DRAIN"}, one_job(8), true},
  };
  for (const Row& row : kRows) {
    HostFacts facts = facts_in_state(row.base, row.flags);
    facts.jobs = row.jobs;
    const SlurmView view = slurm_view(facts);
    SCOPED_TRACE(facts.slurm.record->state.raw());
    EXPECT_EQ(view.knowledge, Knowledge::kKnown);
    EXPECT_TRUE(view.is(row.base)) << view.base;
    EXPECT_EQ(view.in_use, row.in_use);
    EXPECT_EQ(view.reason, "");
    EXPECT_EQ(known_state(facts), facts.slurm.record->state);
  }
}

// A record may be half a minute older than the job, and one of an operator that has died minutes.
TEST(SlurmViewTest, AJobHereContradictsIdle) {
  struct Row {
    LocalJobs jobs;
    bool contained;
    const char* base;
    std::optional<std::int64_t> allocated_cpus;
  };
  const Row kRows[] = {
      {one_job(8), true, "MIXED", 8},
      {one_job(128), true, "ALLOCATED", 128},
      {one_job(128), false, "ALLOCATED", {}},
      {one_job(8), false, "", {}},  // others may have no step
      {one_job(), true, "", {}},    // its CPUs are not seen
  };
  for (const Row& row : kRows) {
    HostFacts facts = facts_in_state("IDLE", {"PLANNED"});
    facts.slurm.record->allocated_cpus = 0;
    facts.slurm_conf.jobs_are_contained = row.contained;
    facts.jobs = row.jobs;
    const SlurmView view = slurm_view(facts);
    EXPECT_EQ(view.base, row.base);
    EXPECT_TRUE(view.in_use);
    EXPECT_EQ(view.reason, view.base.empty() ? "JobStarted" : "");
    EXPECT_EQ(view.message.empty(), !view.base.empty());
    EXPECT_EQ(allocation(facts).cpus, row.allocated_cpus);
  }
}

TEST(SlurmViewTest, AllocationIsSlurmsOrMissing) {
  constexpr std::int64_t kMiB = 1 << 20;
  HostFacts facts = facts_in_state("MIXED");
  facts.slurm.record->allocated_cpus = 2;
  facts.slurm.record->allocated_memory_mib = 32;
  facts.jobs = one_job(8);
  EXPECT_EQ(allocation(facts).cpus, 2);
  EXPECT_EQ(allocation(facts).memory_bytes, 32 * kMiB);
  facts.slurm.record->allocated_memory_mib.reset();
  EXPECT_FALSE(allocation(facts).memory_bytes);
  facts.slurm.stale = true;
  EXPECT_FALSE(allocation(facts).cpus);
  facts.slurm_conf.jobs_are_contained = true;
  EXPECT_EQ(allocation(facts).cpus, 8) << "all jobs are seen here";
}

// CPUs of CoreSpec are no job's: a node is full without them.
TEST(SlurmViewTest, UsableCpusAreThoseWithoutCoreSpec) {
  HostFacts facts = facts_in_state("ALLOCATED");
  facts.slurm.record->cpus = 96;
  facts.slurm.record->allocated_cpus = 94;
  EXPECT_EQ(usable_cpus(facts), 96);
  // slurmrestd 23.02 says ALLOCATED where the figures of the same dump show a part.
  EXPECT_TRUE(slurm_view(facts).is("MIXED"));
  facts.slurm.record->allocated_cpus = 0;  // an older figure than the state
  EXPECT_TRUE(slurm_view(facts).is("ALLOCATED"));
  facts.slurm.record->allocated_cpus = 94;
  facts.slurm_conf.core_spec_cpus = 2;
  EXPECT_EQ(usable_cpus(facts), 94);
  EXPECT_TRUE(slurm_view(facts).is("ALLOCATED"));
  facts.slurm.record->effective_cpus = 95;  // Slurm's own word wins
  EXPECT_EQ(usable_cpus(facts), 95);
  EXPECT_TRUE(slurm_view(facts).is("MIXED"));
  facts.slurm.record->effective_cpus = 0;  // no node has none
  EXPECT_EQ(usable_cpus(facts), 94);
  facts.slurm.record->effective_cpus.reset();
  facts.slurm.record->cpus.reset();
  EXPECT_EQ(usable_cpus(facts), std::nullopt);
  facts.slurm.record.reset();
  EXPECT_EQ(usable_cpus(facts), std::nullopt);
}

TEST(SlurmViewTest, CamelCase) {
  const std::pair<const char*, const char*> kRows[] = {{"IDLE", "Idle"},
                                                       {"NOT_RESPONDING", "NotResponding"},
                                                       {"INVALID_REG", "InvalidReg"},
                                                       {"idle", "Idle"},
                                                       {"_X__Y_", "XY"},
                                                       {"", ""}};
  for (const auto& [word, wanted] : kRows) {
    EXPECT_EQ(camel_case(word), wanted);
  }
}

TEST(SlurmStateTest, RawHasFlagsInAlphabeticalOrder) {
  EXPECT_EQ((SlurmState{"IDLE", {}}.raw()), "IDLE");
  EXPECT_EQ((SlurmState{"MIXED", {"PLANNED", "DRAIN"}}.raw()), "MIXED+DRAIN+PLANNED");
}

}  // namespace
}  // namespace slurmlet::node
