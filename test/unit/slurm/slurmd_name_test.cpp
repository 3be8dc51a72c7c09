#include "slurm/local/slurmd_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_runner.h"
#include "fakes/fake_clock.h"

namespace slurmlet::slurm {
namespace slurmd_name_test {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

CommandOutput told(const std::string& name) {
  CommandOutput output;
  output.out =
      "Active Steps             = NONE\nActual CPUs              = 2\nHostname                 = " +
      name +
      "\nLast slurmctld msg time  = NONE\nSlurmd PID               = 22419\nVersion                "
      "  = 24.11.5\n";
  return output;
}

CommandOutput failed(const std::string& text) {
  CommandOutput output;
  output.exit_code = 1;
  output.err = text;
  return output;
}

const std::string kRefused =
    "scontrol: error: slurm_slurmd_info: Connection refused\n"
    "slurm_load_slurmd_status: Connection refused\n";

class SlurmdNameTest : public testing::Test {
 protected:
  bool step() { return name_.step(clock_.now().steady); }
  bool end(const CommandOutput& output) {
    program_.end = output;
    return step();
  }
  void ask(int pid) {
    SlurmdNameQuestion question;
    question.pid = pid;
    name_.set_question(question);
  }
  std::size_t asked() const { return program_.started.size(); }

  fakes::FakeClock clock_;
  FakeProgram program_;
  SlurmdName name_{std::make_unique<FakeRunner>(program_), [] { return 0.5; }};
};

TEST(SlurmdNameQuery, IsAskedInThePlaceOfSlurmd) {
  const auto plain = slurmd_name_query({});
  EXPECT_THAT(plain.argv, ElementsAre("scontrol", "show", "slurmd"));
  EXPECT_THAT(plain.extra_environment, IsEmpty());
  EXPECT_EQ(plain.timeout, seconds{10});
  const auto placed = slurmd_name_query({1, "/b/slurm.conf", "head", "/opt/slurm/bin"});
  EXPECT_EQ(placed.argv.front(), "/opt/slurm/bin/scontrol");
  EXPECT_THAT(placed.extra_environment, ElementsAre("SLURM_CONF=/b/slurm.conf"));
  EXPECT_THAT(slurmd_name_query({1, "", "head", ""}).extra_environment,
              ElementsAre("SLURM_CONF_SERVER=head"));
}

TEST(SlurmdNameAnswer, TellsAName) { EXPECT_EQ(*read_slurmd_name(told("fut1")), "fut1"); }

TEST(SlurmdNameAnswer, WhatNamesNoNodeIsAProblem) {
  CommandOutput hung;
  hung.timed_out = true;
  hung.signal = 9;
  CommandOutput crashed = told("fut1");
  crashed.signal = 11;
  CommandOutput other;
  other.out = "Hostname = fut1\n";
  CommandOutput cut = told("fut1");
  cut.out.resize(cut.out.find("fut1") + 3);
  const std::vector<std::pair<CommandOutput, std::string>> cases{
      {hung, "no answer within 10 s"},
      {crashed, "killed by signal 11"},
      {failed(kRefused), "scontrol: error: slurm_slurmd_info: Connection refused"},
      {failed(""), "exit code 1"},
      {other, "the answer cannot be parsed"},
      {cut, "the answer contains no node name"},
      {told("(null)"), "the answer contains no node name"},
      {told("n[1-9]"), "the answer contains no node name"},
      {told("-x"), "the answer contains no node name"},
  };
  for (const auto& [output, problem] : cases) {
    const auto name = read_slurmd_name(output);
    ASSERT_FALSE(name) << problem;
    EXPECT_EQ(name.error().message, "scontrol show slurmd: " + problem);
  }
}

TEST_F(SlurmdNameTest, IsAskedOnceForEachSlurmd) {
  EXPECT_FALSE(step());
  EXPECT_EQ(asked(), 0U) << "there is none";
  EXPECT_EQ(name_.wake_at(), kNever);
  ask(42);
  EXPECT_LE(name_.wake_at(), clock_.now().steady);
  EXPECT_FALSE(step());
  ASSERT_EQ(asked(), 1U);
  EXPECT_EQ(name_.wake_at(), clock_.now().steady + seconds{10}) << "its deadline";
  EXPECT_TRUE(end(told("fut1")));
  EXPECT_EQ(name_.name(), "fut1");
  EXPECT_EQ(name_.wake_at(), kNever);
  for (const int pid : {42, 0, 42}) {
    ask(pid);
    clock_.advance(hours{1});
    EXPECT_FALSE(step());
  }
  EXPECT_EQ(asked(), 1U);
  EXPECT_EQ(name_.name(), "fut1");

  ask(43);
  EXPECT_EQ(name_.name(), "");
  step();
  EXPECT_EQ(asked(), 2U);
  EXPECT_TRUE(end(told("fut2")));
  EXPECT_EQ(name_.name(), "fut2");
}

TEST_F(SlurmdNameTest, AFailureIsTriedAgainEverMoreRarelyAndToldOnce) {
  ask(42);
  step();
  EXPECT_TRUE(end(failed(kRefused)));
  EXPECT_EQ(name_.problem(),
            "scontrol show slurmd: scontrol: error: slurm_slurmd_info: Connection refused");
  for (const Duration wait :
       {Duration{seconds{10}}, Duration{seconds{20}}, Duration{seconds{40}}, Duration{seconds{80}},
        Duration{seconds{160}}, Duration{seconds{225}}, Duration{seconds{225}}}) {
    const std::size_t before = asked();
    EXPECT_EQ(name_.wake_at(), clock_.now().steady + wait);
    clock_.advance(wait - std::chrono::milliseconds{1});
    step();
    EXPECT_EQ(asked(), before);
    clock_.advance(std::chrono::milliseconds{1});
    step();
    ASSERT_EQ(asked(), before + 1);
    EXPECT_FALSE(end(failed(kRefused))) << "no news";
  }
  clock_.advance(minutes{5});
  step();
  EXPECT_TRUE(end(told("fut1")));
  EXPECT_EQ(name_.problem(), "");
}

TEST_F(SlurmdNameTest, AnotherSlurmdIsAskedAtOnce) {
  ask(42);
  step();
  EXPECT_TRUE(end(failed(kRefused)));
  ask(43);
  EXPECT_EQ(name_.problem(), "");
  step();
  EXPECT_EQ(asked(), 2U);
}

TEST_F(SlurmdNameTest, WhatThePredecessorSaidDoesNotCount) {
  ask(42);
  step();
  ask(43);
  EXPECT_FALSE(end(told("fut1")));
  EXPECT_EQ(name_.name(), "");
  ASSERT_EQ(asked(), 2U) << "its successor is asked";
  EXPECT_TRUE(end(told("fut2")));
  EXPECT_EQ(name_.name(), "fut2");
}

TEST_F(SlurmdNameTest, WhileThereIsNoSlurmdNobodyIsAsked) {
  ask(42);
  step();
  EXPECT_TRUE(end(failed(kRefused)));
  ask(0);
  EXPECT_EQ(name_.wake_at(), kNever);
  clock_.advance(hours{1});
  step();
  EXPECT_EQ(asked(), 1U);
}

TEST_F(SlurmdNameTest, WithoutScontrolThereIsAProblem) {
  program_.start_error = Error{Code::kNotFound, "there is no scontrol"};
  ask(42);
  EXPECT_TRUE(step());
  EXPECT_EQ(name_.problem(), "scontrol show slurmd: there is no scontrol");
  EXPECT_EQ(name_.wake_at(), clock_.now().steady + seconds{10});
}

TEST_F(SlurmdNameTest, WithoutARunnerNobodyIsAsked) {
  SlurmdName nobody{nullptr, [] { return 0.5; }};
  SlurmdNameQuestion question;
  question.pid = 42;
  nobody.set_question(question);
  EXPECT_FALSE(nobody.step(clock_.now().steady));
  EXPECT_EQ(nobody.wake_at(), kNever);
  EXPECT_THAT(nobody.wake_fds(), IsEmpty());
}

}  // namespace slurmd_name_test
}  // namespace slurmlet::slurm
