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
  EXPECT_EQ(view.reason, "NotQueriedYet");
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
      {SlurmFailure::kRecordUnavailable, "RecordUnavailable", "slurmlet-operator"},
      {SlurmFailure::kNodeUnknown, "SlurmNodeUnknown", "NodeName"},
      {SlurmFailure::kSackUnavailable, "SackUnavailable", "start slurmd or sackd"},
      {SlurmFailure::kOtherCluster, "OtherCluster", "slurm.restURL"},
      {SlurmFailure::kFileSystemHangs, "FileSystemNotResponding", "check its mount"},
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
    EXPECT_THAT(slurm_view(facts).message, HasSubstr("this node"));
    facts.slurm.by_slurmrestd = true;
    EXPECT_THAT(slurm_view(facts).message,
                AllOf(HasSubstr("slurmrestd's host"), Not(HasSubstr("this node"))));
  }
}

TEST(SlurmViewTest, AFreshAnswerOutlivesAFailure) {
  HostFacts facts = facts_in_state("IDLE", {"DRAIN"});
  facts.slurm.failure = SlurmFailure::kControllerUnreachable;
  const SlurmView view = slurm_view(facts);
  EXPECT_EQ(view.knowledge, Knowledge::kKnown);
  EXPECT_TRUE(view.is("IDLE"));
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

using Bases = std::set<std::string>;

const LocalJobs kNone{};
const Bases kUsed{"ALLOCATED", "MIXED"};
const Bases kLive{"ALLOCATED", "IDLE", "MIXED"};
const Bases kAny{"ALLOCATED", "DOWN", "IDLE", "MIXED"};

LocalJobs one_job(std::optional<std::int64_t> cpus = std::nullopt) { return {1, cpus, {}, {7}}; }

struct AnswerRow {
  AnswerKind kind;
  const char* base;
  std::set<std::string> flags;
  const char* reason;
  std::optional<LocalJobs> jobs;
  Bases bases;
  Use use;
};

// What an answer tells by itself. A MIXED that the client made of cached figures may hide anything;
// steps that run here rule out IDLE, and DOWN where nothing speaks for it; their absence rules out
// nothing.
TEST(SlurmViewTest, WhatAnAnswerTells) {
  constexpr auto kOne = AnswerKind::kOneNode;
  constexpr auto kBase = AnswerKind::kOneNodeBase;
  constexpr auto kFull = AnswerKind::kFullDump;
  const AnswerRow kRows[] = {
      // the base state itself
      {kOne, "IDLE", {}, "", std::nullopt, {"IDLE"}, Use::kFree},
      {kOne, "IDLE", {}, "", kNone, {"IDLE"}, Use::kFree},
      {kOne, "IDLE", {"DRAIN"}, "x", kNone, {"IDLE"}, Use::kFree},
      {kOne, "IDLE", {"COMPLETING"}, "", kNone, {"IDLE"}, Use::kBusy},
      {kOne, "IDLE", {}, "", one_job(8), {"IDLE"}, Use::kBusy},
      {kOne, "DOWN", {}, "x", kNone, {"DOWN"}, Use::kFree},
      {kOne, "DOWN", {}, "x", one_job(8), {"DOWN"}, Use::kBusy},
      {kOne, "DOWN", {"COMPLETING"}, "x", kNone, {"DOWN"}, Use::kBusy},
      {kOne, "UNKNOWN", {}, "", kNone, {"UNKNOWN"}, Use::kFree},
      // in use, in part or not
      {kOne, "ALLOCATED", {}, "", std::nullopt, kUsed, Use::kBusy},
      {kOne, "ALLOCATED", {}, "", kNone, kUsed, Use::kBusy},  // an salloc without steps
      {kOne, "ALLOCATED", {"DRAIN"}, "x", kNone, kUsed, Use::kBusy},
      {kOne, "ALLOCATED", {}, "", one_job(), kUsed, Use::kBusy},
      {kOne, "ALLOCATED", {}, "", one_job(8), kUsed, Use::kBusy},  // another may have no steps
      {kOne, "ALLOCATED", {}, "", one_job(128), {"ALLOCATED"}, Use::kBusy},
      {kOne, "ALLOCATED", {}, "", one_job(130), {"ALLOCATED"}, Use::kBusy},
      {kBase, "ALLOCATED", {}, "", kNone, kUsed, Use::kBusy},
      // MIXED by cached figures
      {kOne, "MIXED", {}, "", std::nullopt, kAny, Use::kUnknown},
      {kOne, "MIXED", {}, "", kNone, kAny, Use::kUnknown},
      {kOne, "MIXED", {"DRAIN"}, "x", kNone, kAny, Use::kUnknown},
      {kOne, "MIXED", {"COMPLETING"}, "", kNone, kAny, Use::kBusy},
      {kOne, "MIXED", {}, "", one_job(), kUsed, Use::kBusy},
      {kOne, "MIXED", {"PLANNED"}, "", one_job(), kUsed, Use::kBusy},
      {kOne, "MIXED", {}, "", one_job(128), {"ALLOCATED"}, Use::kBusy},
      {kOne, "MIXED", {"COMPLETING"}, "", one_job(), kLive, Use::kBusy},
      {kOne, "MIXED", {}, "x", one_job(), {"ALLOCATED", "DOWN", "MIXED"}, Use::kBusy},
      {kOne, "MIXED", {"FAIL"}, "", one_job(), {"ALLOCATED", "DOWN", "MIXED"}, Use::kBusy},
      {kOne, "MIXED", {"NOT_RESPONDING"}, "", kNone, kAny, Use::kUnknown},
      // a full dump
      {kFull, "MIXED", {}, "x", kNone, {"MIXED"}, Use::kBusy},
      {kFull, "MIXED", {"DRAIN"}, "x", std::nullopt, {"MIXED"}, Use::kBusy},
      {kFull, "ALLOCATED", {}, "", kNone, {"ALLOCATED"}, Use::kBusy},
      {kFull, "ALLOCATED", {}, "", one_job(8), {"ALLOCATED"}, Use::kBusy},
      {kFull, "MIXED", {}, "", one_job(128), {"MIXED"}, Use::kBusy},
      {kFull, "IDLE", {}, "", one_job(128), {"IDLE"}, Use::kBusy},
  };
  for (const AnswerRow& row : kRows) {
    HostFacts facts = facts_in_state(row.base, row.flags);
    facts.slurm.record->kind = row.kind;
    facts.slurm.record->reason = row.reason;
    facts.jobs = row.jobs;
    const SlurmView view = slurm_view(facts);
    const std::string what = facts.slurm.record->state.raw() + " with " +
                             (row.jobs ? std::to_string(row.jobs->jobs) : "unknown") + " jobs";
    EXPECT_EQ(view.knowledge, Knowledge::kKnown) << what;
    EXPECT_EQ(view.bases, row.bases) << what;
    EXPECT_EQ(view.use, row.use) << what;
    EXPECT_EQ(view.reason, row.bases.size() == 1 ? "" : "NotConfirmed") << what;
    EXPECT_EQ(view.message.empty(), row.bases.size() == 1) << what;
    EXPECT_EQ(needs_confirmation(facts), row.bases.size() > 1 && row.jobs) << what;
  }
}

// scontrol update nodename=n1 state=down reason=none, while its steps still end.
TEST(SlurmViewTest, TheTimeOfAReasonIsOne) {
  HostFacts facts = facts_in_state("MIXED");
  facts.slurm.record->kind = AnswerKind::kOneNode;
  facts.slurm.record->reason = "";
  facts.slurm.record->reason_time = time_of("2026-11-20T14:02:11Z");
  facts.jobs = one_job();
  EXPECT_EQ(slurm_view(facts).bases, (Bases{"ALLOCATED", "DOWN", "MIXED"}));
}

// With PrologFlags=Contain every job has a step here, so their cpusets are all that is allocated.
TEST(SlurmViewTest, ContainedJobsTellPartFromAll) {
  HostFacts facts = facts_in_state("ALLOCATED");
  facts.slurm.record->kind = AnswerKind::kOneNode;
  facts.slurm_conf.jobs_are_contained = true;
  facts.jobs = one_job(8);
  EXPECT_TRUE(slurm_view(facts).is("MIXED"));
  facts.jobs = one_job(128);
  EXPECT_TRUE(slurm_view(facts).is("ALLOCATED"));
  facts.jobs = one_job();
  EXPECT_EQ(slurm_view(facts).bases, kUsed);
  facts.jobs = kNone;  // its first step is about to start
  EXPECT_EQ(slurm_view(facts).bases, kUsed);
  facts.jobs = one_job(8);
  facts.slurm.record->cpus.reset();
  EXPECT_EQ(slurm_view(facts).bases, kUsed);
}

// What jobs do on all nodes of a parallel job at once need not be asked about where it is seen.
TEST(SlurmViewTest, JobsThatBeganSinceTheAnswerTellTheStateThemselves) {
  struct Row {
    const char* base;
    std::set<std::string> flags;
    const char* reason;
    bool contained;
    std::optional<LocalJobs> jobs;
    bool tells;
    Bases bases;
  };
  const Row kRows[] = {
      {"IDLE", {}, "", true, one_job(8), true, {"MIXED"}},
      {"IDLE", {}, "", true, one_job(128), true, {"ALLOCATED"}},
      {"IDLE", {"PLANNED", "RESERVED"}, "", true, one_job(128), true, {"ALLOCATED"}},
      {"MIXED", {}, "", true, one_job(128), true, {"ALLOCATED"}},
      {"IDLE", {}, "", false, one_job(8), false, {"IDLE"}},         // others may have no step
      {"IDLE", {}, "", true, one_job(), false, {"IDLE"}},           // cores are not seen
      {"IDLE", {}, "", true, std::nullopt, false, {"IDLE"}},        // nor steps
      {"ALLOCATED", {}, "", true, kNone, false, kUsed},             // idle now, or down
      {"IDLE", {"DRAIN"}, "x", true, one_job(8), false, {"IDLE"}},  // then drained, or down
      {"IDLE", {"COMPLETING"}, "", true, one_job(8), false, {"IDLE"}},
      {"DOWN", {}, "x", true, one_job(8), false, {"DOWN"}},
  };
  for (const Row& row : kRows) {
    HostFacts facts = facts_in_state(row.base, row.flags);
    SCOPED_TRACE(facts.slurm.record->state.raw() + (row.jobs ? " with jobs" : ""));
    facts.slurm.record->kind = AnswerKind::kOneNode;
    facts.slurm.record->reason = row.reason;
    facts.slurm_conf.jobs_are_contained = row.contained;
    facts.jobs = row.jobs;
    EXPECT_FALSE(jobs_tell_state(facts)) << "what was seen at the answer is not known";
    facts.jobs_at_answer.emplace();
    EXPECT_EQ(jobs_tell_state(facts), row.tells);
    EXPECT_EQ(slurm_view(facts).bases, row.bases);
    facts.slurm.failure = SlurmFailure::kControllerUnreachable;
    EXPECT_EQ(slurm_view(facts).bases, row.bases) << "one query that failed changes nothing";
    EXPECT_FALSE(jobs_tell_state(facts)) << "but slurmctld is to be asked";
    facts.slurm.failure.reset();
    if (row.tells) {
      facts.jobs_at_answer = facts.jobs->job_ids;
      facts.slurm.record->state.base = "IDLE";
      EXPECT_TRUE(slurm_view(facts).is("IDLE")) << "slurmctld has spoken since";
      facts.slurm.stale = true;
      EXPECT_FALSE(jobs_tell_state(facts));
    }
  }
}

// A record comes by itself: nobody asks because of a job that began since.
TEST(SlurmViewTest, AJobThatBeganSinceADumpIsNotTakenForIdle) {
  struct Row {
    std::set<std::string> flags;
    bool contained;
    std::vector<std::uint32_t> at_answer;
    Bases bases;
    std::optional<std::int64_t> allocated_cpus;
  };
  const Row kRows[] = {
      {{}, true, {}, {"MIXED"}, 8},        {{}, false, {}, {"ALLOCATED", "IDLE", "MIXED"}, {}},
      {{}, false, {7}, {"IDLE"}, 0},  // slurmctld knows better
      {{"DRAIN"}, false, {}, {"IDLE"}, 0}, {{"COMPLETING"}, false, {}, {"IDLE"}, 0},
  };
  for (const Row& row : kRows) {
    HostFacts facts = facts_in_state("IDLE", row.flags);
    SCOPED_TRACE(facts.slurm.record->state.raw() + (row.contained ? " contained" : ""));
    facts.slurm.record->reason = "";
    facts.slurm.record->allocated_cpus = 0;
    facts.slurm_conf.jobs_are_contained = row.contained;
    facts.jobs = one_job(8);
    facts.jobs->job_ids = {7};
    facts.jobs_at_answer = row.at_answer;
    EXPECT_EQ(slurm_view(facts).bases, row.bases);
    EXPECT_EQ(slurm_view(facts).use, Use::kBusy);
    EXPECT_EQ(allocation(facts).cpus, row.allocated_cpus);
  }
}

// A partial salloc, confirmed by a full dump, and the answer about one node that follows.
HostFacts confirmed_salloc() {
  HostFacts facts = facts_in_state("MIXED");
  facts.slurm.record->allocated_cpus = 2;
  facts.slurm.record->allocated_memory_mib = 64;
  facts.jobs = LocalJobs{};
  facts.confirmed = Confirmation{*facts.slurm.record, {}};
  facts.slurm.record->kind = AnswerKind::kOneNode;
  return facts;
}

TEST(SlurmViewTest, AFullDumpConfirmsWhatHasNotChangedSince) {
  const HostFacts same = confirmed_salloc();
  EXPECT_TRUE(slurm_view(same).is("MIXED"));
  EXPECT_EQ(slurm_view(same).use, Use::kBusy);
  EXPECT_TRUE(needs_confirmation(same)) << "it may have ended without a trace";
  EXPECT_EQ(known_state(same).raw(), "MIXED");

  using Change = void (*)(HostFacts&);
  struct Row {
    const char* what;
    Change change;
    Bases bases;
  };
  const Row kRows[] = {
      {"a flag that comes and goes",
       [](HostFacts& f) { f.slurm.record->state.flags.insert("PLANNED"); },
       {"MIXED"}},
      {"slurmctld's own base state",
       [](HostFacts& f) {
         f.slurm.record->kind = AnswerKind::kOneNodeBase;
         f.slurm.record->state.base = "ALLOCATED";
       },
       {"MIXED"}},
      {"a reason", [](HostFacts& f) { f.slurm.record->reason = "x"; }, kAny},
      {"the same reason given anew",
       [](HostFacts& f) { f.slurm.record->reason_time = time_of("2026-11-20T14:02:11Z"); }, kAny},
      {"drained", [](HostFacts& f) { f.slurm.record->state.flags.insert("DRAIN"); }, kAny},
      {"figures of a later dump", [](HostFacts& f) { f.slurm.record->allocated_cpus = 3; }, kAny},
      {"another node", [](HostFacts& f) { f.confirmed->record.name = "n2"; }, kAny},
      {"a job began", [](HostFacts& f) { f.jobs = one_job(); }, kUsed},
      {"a job ended", [](HostFacts& f) { f.confirmed->job_ids = {7}; }, kAny},
      {"jobs cannot be seen", [](HostFacts& f) { f.jobs.reset(); }, kAny},
      {"it was not in use", [](HostFacts& f) { f.confirmed->record.state.base = "IDLE"; }, kAny},
      {"it was down", [](HostFacts& f) { f.confirmed->record.state.base = "DOWN"; }, kAny},
      {"no longer confirmed", [](HostFacts& f) { f.confirmed.reset(); }, kAny},
  };
  for (const Row& row : kRows) {
    HostFacts facts = confirmed_salloc();
    row.change(facts);
    EXPECT_EQ(slurm_view(facts).bases, row.bases) << row.what;
  }
}

TEST(SlurmViewTest, TheKnownStateHasNoBaseThatIsNotConfirmed) {
  HostFacts facts = facts_in_state("MIXED", {"DRAIN"});
  EXPECT_EQ(known_state(facts).raw(), "MIXED+DRAIN");
  facts.slurm.record->kind = AnswerKind::kOneNode;
  EXPECT_EQ(known_state(facts).raw(), "UNKNOWN+DRAIN");
  facts.slurm.stale = true;
  EXPECT_EQ(known_state(facts).raw(), "UNKNOWN+DRAIN");
}

// sinfo until 23.02, and the JSON of 23.02, say ALLOCATED where the figures of the same dump tell
// of a part.
TEST(SlurmViewTest, AFullDumpOfANodeInUseInPartIsMixed) {
  HostFacts facts = facts_in_state("ALLOCATED", {"DRAIN"});
  facts.slurm.record->cpus = 8;
  facts.slurm.record->allocated_cpus = 3;
  EXPECT_TRUE(slurm_view(facts).is("MIXED"));
  facts.slurm.record->allocated_cpus = 0;  // an older figure than the state
  EXPECT_TRUE(slurm_view(facts).is("ALLOCATED"));
  facts.slurm.record->allocated_cpus = 6;
  facts.slurm.record->effective_cpus = 6;
  EXPECT_TRUE(slurm_view(facts).is("ALLOCATED"));
}

struct AllocationRow {
  const char* what;
  AnswerKind kind;
  const char* base;
  std::optional<LocalJobs> jobs;
  bool contained;
  std::optional<std::int64_t> cpus;
  std::optional<std::int64_t> memory_bytes;
};

// What is unknown is not 0, and what is seen here is not all of it.
TEST(SlurmViewTest, AllocationIsKnownOrMissing) {
  constexpr auto kOne = AnswerKind::kOneNode;
  constexpr auto kFull = AnswerKind::kFullDump;
  constexpr std::int64_t kMiB = 1 << 20;
  const LocalJobs none{0, 0, 0};
  const LocalJobs jobs{1, 8, 64 * kMiB, {7}};
  const AllocationRow kRows[] = {
      {"a full dump", kFull, "MIXED", jobs, true, 2, 32 * kMiB},
      {"an salloc without steps", kOne, "ALLOCATED", none, false, {}, {}},
      {"the same with contained jobs", kOne, "ALLOCATED", none, true, {}, {}},
      {"a MIXED that may be old", kOne, "MIXED", none, false, {}, {}},
      {"idle", kOne, "IDLE", none, false, 0, 0},
      {"idle, jobs not seen", kOne, "IDLE", std::nullopt, false, 0, 0},
      {"down", kOne, "DOWN", none, false, 0, 0},
      {"jobs with cpusets, perhaps others", kOne, "ALLOCATED", jobs, false, {}, {}},
      {"jobs with cpusets, all of them", kOne, "ALLOCATED", jobs, true, 8, 64 * kMiB},
  };
  for (const AllocationRow& row : kRows) {
    HostFacts facts = facts_in_state(row.base);
    facts.slurm.record->kind = row.kind;
    facts.slurm.record->allocated_cpus = 2;
    facts.slurm.record->allocated_memory_mib = 32;
    facts.slurm_conf.jobs_are_contained = row.contained;
    facts.jobs = row.jobs;
    EXPECT_EQ(allocation(facts).cpus, row.cpus) << row.what;
    EXPECT_EQ(allocation(facts).memory_bytes, row.memory_bytes) << row.what;
  }
  HostFacts completing = facts_in_state("IDLE", {"COMPLETING"});
  completing.slurm.record->kind = kOne;
  EXPECT_EQ(allocation(completing).cpus, 0);
  completing.jobs = jobs;
  EXPECT_FALSE(allocation(completing).cpus) << "a job may have begun since";
  EXPECT_EQ(allocation(confirmed_salloc()).cpus, 2);
  EXPECT_EQ(allocation(confirmed_salloc()).memory_bytes, 64 * kMiB);
  HostFacts unreachable = confirmed_salloc();
  unreachable.slurm.stale = true;
  EXPECT_FALSE(allocation(unreachable).cpus);
}

// CPUs of CoreSpec are no job's: a node is full without them.
TEST(SlurmViewTest, UsableCpusAreThoseWithoutCoreSpec) {
  HostFacts facts = facts_in_state("ALLOCATED");
  facts.slurm.record->cpus = 96;
  facts.slurm.record->allocated_cpus = 94;
  EXPECT_EQ(usable_cpus(facts), 96);
  EXPECT_TRUE(slurm_view(facts).is("MIXED"));
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
