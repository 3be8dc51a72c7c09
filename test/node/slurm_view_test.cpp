#include "node/slurm_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/node_fixtures.h"

namespace slurmlet::node {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SlurmViewTest, NeverAsked) {
  HostFacts facts = good_facts();
  facts.slurm = {};
  const SlurmView view = slurm_view(facts);
  EXPECT_EQ(view.knowledge, Knowledge::kNotAskedYet);
  EXPECT_EQ(view.reason, "NotAskedYet");
  EXPECT_FALSE(view.message.empty());
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
      {SlurmFailure::kTokenRefused, "TokenRefused", "slurm.jwtFile"},
      {SlurmFailure::kRestUnavailable, "RestUnavailable", "slurm.restURL"},
      {SlurmFailure::kFeedUnavailable, "FeedUnavailable", "slurm.feed"},
      {SlurmFailure::kNodeUnknown, "SlurmNodeUnknown", "slurm.nodeName"},
      {SlurmFailure::kSackUnavailable, "SackUnavailable", "start slurmd or sackd"},
      {SlurmFailure::kOtherCluster, "OtherCluster", "slurm.restURL"},
      {SlurmFailure::kPermissionDenied, "PermissionDenied", "PrivateData"},
      {SlurmFailure::kNotInSlurm, "NotInSlurm", "slurm.nodeName"},
      {SlurmFailure::kBadConfiguration, "SlurmConfInvalid", "slurm.conf"},
      {SlurmFailure::kCommandMissing, "SlurmCommandMissing", "slurm.binDir"},
      {SlurmFailure::kGarbage, "AnswerNotUnderstood", "slurmlet parse-slurm"},
      {SlurmFailure::kRateLimited, "ControllerRateLimited", "slurm.pollInterval"},
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

TEST(SlurmViewTest, WithoutSlurmConfTheControllerHasNoName) {
  HostFacts facts = good_facts();
  facts.slurm = {};
  facts.slurm.failure = SlurmFailure::kTimeout;
  facts.slurm_conf = {};
  EXPECT_THAT(slurm_view(facts).message,
              ::testing::StartsWith("slurmctld did not answer in time;"));
}

// With slurmrestd the asking, and so the trouble with munge, is on slurmrestd's host.
TEST(SlurmViewTest, NamesTheHostWhoseMungeItIs) {
  for (const auto failure : {SlurmFailure::kMungeUnavailable, SlurmFailure::kAuthenticationRefused,
                             SlurmFailure::kClockSkew}) {
    HostFacts facts = good_facts();
    facts.slurm = {};
    facts.slurm.failure = failure;
    facts.slurm.source = "sinfo";
    EXPECT_THAT(slurm_view(facts).message, HasSubstr("this node"));
    facts.slurm.source = "slurmrestd https://rest1:6820";
    EXPECT_THAT(slurm_view(facts).message,
                AllOf(HasSubstr("slurmrestd's host"), Not(HasSubstr("this node"))));
  }
}

TEST(SlurmViewTest, AFreshAnswerOutlivesAFailure) {
  HostFacts facts = facts_in_state("IDLE", {"DRAIN"});
  facts.slurm.failure = SlurmFailure::kControllerUnreachable;
  const SlurmView view = slurm_view(facts);
  EXPECT_EQ(view.knowledge, Knowledge::kKnown);
  EXPECT_EQ(view.base, "IDLE");
}

TEST(SlurmViewTest, AStaleAnswerIsShownAsTheLastKnownState) {
  HostFacts facts = facts_in_state("MIXED", {"DRAIN"});
  facts.slurm.failure = SlurmFailure::kControllerUnreachable;
  facts.slurm.stale = true;
  const SlurmView view = slurm_view(facts);
  EXPECT_EQ(view.knowledge, Knowledge::kUnknown);
  EXPECT_EQ(view.reason, "ControllerUnreachable");
  EXPECT_THAT(view.message, AllOf(HasSubstr("slurmctld (head1:6817)"), HasSubstr("MIXED+DRAIN"),
                                  HasSubstr("2026-11-20T14:02:11Z")));
}

TEST(SlurmViewTest, AStaleAnswerWithoutAFailureIsTooOld) {
  HostFacts facts = facts_in_state("IDLE");
  facts.slurm.stale = true;
  const SlurmView view = slurm_view(facts);
  EXPECT_EQ(view.knowledge, Knowledge::kUnknown);
  EXPECT_EQ(view.reason, "AnswerTooOld");
}

struct Evidence {
  const char* base;
  std::set<std::string> flags;
  std::optional<LocalJobs> jobs;
  std::optional<std::int64_t> cpus;
  const char* effective;
  bool busy;
};

// MIXED and ALLOCATED of a single-node answer may be minutes old; the machine corrects them.
TEST(SlurmViewTest, LocalEvidence) {
  const LocalJobs none{0, std::nullopt};
  const Evidence kRows[] = {
      // nothing known locally: Slurm's word
      {"IDLE", {}, std::nullopt, 128, "IDLE", false},
      {"MIXED", {}, std::nullopt, 128, "MIXED", true},
      {"ALLOCATED", {}, std::nullopt, 128, "ALLOCATED", true},
      // no local job
      {"MIXED", {}, none, 128, "IDLE", false},
      {"MIXED", {"COMPLETING"}, none, 128, "MIXED", true},
      {"ALLOCATED", {}, none, 128, "ALLOCATED", true},  // an salloc without steps
      {"IDLE", {}, none, 128, "IDLE", false},
      // local jobs
      {"ALLOCATED", {}, LocalJobs{1, 8}, 128, "MIXED", true},
      {"ALLOCATED", {}, LocalJobs{1, 128}, 128, "ALLOCATED", true},
      {"MIXED", {}, LocalJobs{2, 128}, 128, "ALLOCATED", true},
      {"MIXED", {}, LocalJobs{2, 64}, 128, "MIXED", true},
      {"ALLOCATED", {}, LocalJobs{1, 130}, 128, "ALLOCATED", true},
      {"MIXED", {}, LocalJobs{2, std::nullopt}, 128, "MIXED", true},
      {"ALLOCATED", {}, LocalJobs{2, 8}, std::nullopt, "ALLOCATED", true},
      // live words of Slurm stay
      {"IDLE", {}, LocalJobs{1, 8}, 128, "IDLE", true},
      {"DOWN", {}, LocalJobs{1, 8}, 128, "DOWN", true},
      {"IDLE", {"COMPLETING"}, none, 128, "IDLE", true},
      {"DOWN", {"COMPLETING"}, none, 128, "DOWN", true},
      {"UNKNOWN", {}, none, 128, "UNKNOWN", false},
  };
  for (const Evidence& row : kRows) {
    HostFacts facts = facts_in_state(row.base, row.flags);
    facts.slurm.record->cpus = row.cpus;
    facts.jobs = row.jobs;
    const SlurmView view = slurm_view(facts);
    const std::string what = facts.slurm.record->state.raw() + " with " +
                             (row.jobs ? std::to_string(row.jobs->jobs) : "unknown") + " jobs";
    EXPECT_EQ(view.knowledge, Knowledge::kKnown) << what;
    EXPECT_EQ(view.base, row.effective) << what;
    EXPECT_EQ(view.busy, row.busy) << what;
  }
}

// A full dump has MIXED and ALLOCATED right; a job may be bound to fewer CPUs than it was given.
TEST(SlurmViewTest, AFreshAllocationIsBelieved) {
  const LocalJobs none{0, std::nullopt};
  const Evidence kRows[] = {
      {"MIXED", {}, none, 128, "MIXED", true},
      {"ALLOCATED", {}, none, 128, "ALLOCATED", true},
      {"ALLOCATED", {}, LocalJobs{1, 8}, 128, "ALLOCATED", true},
      {"MIXED", {}, LocalJobs{1, 8}, 128, "MIXED", true},
      {"MIXED", {}, LocalJobs{1, 128}, 128, "ALLOCATED", true},  // plainly
      {"IDLE", {}, LocalJobs{1, 128}, 128, "IDLE", true},
  };
  for (const Evidence& row : kRows) {
    HostFacts facts = facts_in_state(row.base, row.flags);
    facts.slurm.record->allocation_is_fresh = true;
    facts.slurm.record->cpus = row.cpus;
    facts.jobs = row.jobs;
    const SlurmView view = slurm_view(facts);
    EXPECT_EQ(view.base, row.effective) << row.base;
    EXPECT_EQ(view.busy, row.busy) << row.base;
  }
}

// The JSON of 23.02 says ALLOCATED where its own figures, and scontrol's text, say MIXED.
TEST(SlurmViewTest, AFreshAllocationInPartIsMixed) {
  HostFacts facts = facts_in_state("ALLOCATED", {"DRAIN"});
  facts.slurm.record->allocation_is_fresh = true;
  facts.slurm.record->cpus = 8;
  facts.slurm.record->allocated_cpus = 3;
  EXPECT_EQ(slurm_view(facts).base, "MIXED");
  facts.slurm.record->allocated_cpus = 0;  // an older figure than the state
  EXPECT_EQ(slurm_view(facts).base, "ALLOCATED");
  facts.slurm.record->allocated_cpus = 6;
  facts.slurm.record->effective_cpus = 6;
  EXPECT_EQ(slurm_view(facts).base, "ALLOCATED");
  facts.slurm.record->effective_cpus = 8;
  facts.slurm.record->allocation_is_fresh = false;  // a single question's figures may be old
  EXPECT_EQ(slurm_view(facts).base, "ALLOCATED");
}

// CPUs of CoreSpec are no job's: a node is full without them.
TEST(SlurmViewTest, UsableCpusAreThoseWithoutCoreSpec) {
  HostFacts facts = facts_in_state("MIXED");
  facts.slurm.record->cpus = 96;
  facts.jobs = LocalJobs{1, 94};
  EXPECT_EQ(usable_cpus(facts), 96);
  EXPECT_EQ(slurm_view(facts).base, "MIXED");
  facts.slurm_conf.core_spec_cpus = 2;
  EXPECT_EQ(usable_cpus(facts), 94);
  EXPECT_EQ(slurm_view(facts).base, "ALLOCATED");
  facts.slurm.record->effective_cpus = 95;  // Slurm's own word wins
  EXPECT_EQ(usable_cpus(facts), 95);
  EXPECT_EQ(slurm_view(facts).base, "MIXED");
  facts.slurm.record->effective_cpus = 0;  // no node has none
  EXPECT_EQ(usable_cpus(facts), 94);
  facts.slurm.record->effective_cpus.reset();
  facts.slurm.record->cpus.reset();
  EXPECT_EQ(usable_cpus(facts), std::nullopt);
  facts.slurm.record.reset();
  EXPECT_EQ(usable_cpus(facts), std::nullopt);
}

TEST(SlurmViewTest, CamelCase) {
  struct Row {
    const char* word;
    const char* wanted;
  };
  const Row kRows[] = {{"IDLE", "Idle"},
                       {"NOT_RESPONDING", "NotResponding"},
                       {"INVALID_REG", "InvalidReg"},
                       {"idle", "Idle"},
                       {"_X__Y_", "XY"},
                       {"", ""}};
  for (const Row& row : kRows) {
    EXPECT_EQ(camel_case(row.word), row.wanted);
  }
}

TEST(SlurmStateTest, RawHasFlagsInAlphabeticalOrder) {
  EXPECT_EQ((SlurmState{"IDLE", {}}.raw()), "IDLE");
  EXPECT_EQ((SlurmState{"MIXED", {"PLANNED", "DRAIN"}}.raw()), "MIXED+DRAIN+PLANNED");
}

}  // namespace
}  // namespace slurmlet::node
