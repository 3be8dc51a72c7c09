// The annotation between slurmlet-operator and the daemon: one form, and nothing else is accepted.

#include "slurm/sources/published_record.h"

#include <gmock/gmock.h>

#include "record_fixture.h"

namespace slurmlet::slurm {
namespace published_record_test {

using node::SlurmFailure;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

PublishedRecord good() {
  PublishedRecord record;
  record.cluster = "alps";
  record.dumped_at = WallTime{seconds{1763757000}};
  record.interval = seconds{30};
  record.refresh = minutes{5};
  record.text = "NodeName=n1 State=IDLE\n";
  return record;
}

TEST(PublishedRecord, IsOneCompactLine) {
  EXPECT_EQ(to_annotation(good()),
            R"({"format":1,"cluster":"alps","dumpedAt":1763757000,"intervalSeconds":30,)"
            R"("refreshSeconds":300,"text":"NodeName=n1 State=IDLE\n"})");
}

TEST(PublishedRecord, IsReadAsItWasWritten) {
  auto failing = good();
  failing.failure = "ControllerUnreachable: connect failure";
  failing.failed_at = WallTime{seconds{1763757090}};
  auto first = good();
  first.dumped_at.reset();
  first.failure = "munge unavailable: \"x\"\n";
  auto missing = good();
  missing.text = "";
  auto real = good();
  real.text = scontrol_record("n1", "IDLE+DRAIN", " Reason=\xC3\xBC\x01\x1f\" [root@x]");
  for (const auto& record : {good(), failing, first, missing, real}) {
    const auto read = parse_published_record(to_annotation(record));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, record);
  }
}

TEST(PublishedRecord, BytesThatAreNoTextAreReplaced) {
  auto record = good();
  record.text = "NodeName=n1 Comment=\xFF\n";
  EXPECT_EQ(parse_published_record(to_annotation(record))->text,
            "NodeName=n1 Comment=\xEF\xBF\xBD\n");
}

TEST(PublishedRecord, MembersOfLaterVersionsAreIgnored) {
  auto text = to_annotation(good());
  text.insert(1, R"("news":[1,{"a":null}],)");
  EXPECT_EQ(*parse_published_record(text), good());
}

std::string with(const std::string& what, const std::string& instead) {
  auto text = to_annotation(good());
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), instead);
}

TEST(PublishedRecord, AnythingElseIsRefused) {
  const std::string none = "not written by slurmlet-operator";
  const struct {
    std::string text;
    std::string why;
  } kRows[] = {
      {"", none},
      {"null", none},
      {"[]", none},
      {"1763757000", none},
      {"NodeName=n1 State=IDLE", none},
      {to_annotation(good()) + "x", none},
      {std::string(kMaxAnnotationBytes, '['), none},
      {std::string(kMaxAnnotationBytes + 1, ' '), "longer than any record"},
      {"{}", "does not specify its format"},
      {with("\"format\":1", "\"format\":\"1\""), "does not specify its format"},
      {with("\"format\":1", "\"format\":1.0"), "does not specify its format"},
      {with("\"format\":1", "\"format\":2"), "has format 2, this version reads 1"},
      {with("\"alps\"", "7"), "no usable \"cluster\""},
      {with("1763757000", "\"1763757000\""), "no usable \"dumpedAt\""},
      {with("1763757000", "1763757000.5"), "no usable \"dumpedAt\""},
      {with("1763757000", "0"), "no usable \"dumpedAt\""},
      {with("1763757000", "-1"), "no usable \"dumpedAt\""},
      {with("1763757000", "99999999999"), "no usable \"dumpedAt\""},
      {with("1763757000", "18446744073709551615"), "no usable \"dumpedAt\""},
      {with("1763757000", "9223372036854775808"), "no usable \"dumpedAt\""},
      {with("1763757000", "1e400"), none},
      {with("1763757000", "null"), "no usable \"dumpedAt\""},
      {with(":30", ":0"), "no usable \"intervalSeconds\""},
      {with(":30", ":86401"), "no usable \"intervalSeconds\""},
      {with(":30", ":true"), "no usable \"intervalSeconds\""},
      {with("\"intervalSeconds\":30,", ""), "no usable \"intervalSeconds\""},
      {with(":300", ":-300"), "no usable \"refreshSeconds\""},
      {with(":300", ":[300]"), "no usable \"refreshSeconds\""},
      {with("\"refreshSeconds\":300,", ""), "no usable \"refreshSeconds\""},
      {with("\"text\"", "\"Text\""), "no usable \"text\""},
      {with("\"text\"", "\"failure\":{},\"text\""), "no usable \"failure\""},
      {with("\"NodeName=n1 State=IDLE\\n\"", "[\"NodeName=n1\"]"), "no usable \"text\""},
  };
  for (const auto& row : kRows) {
    const auto record = parse_published_record(row.text);
    ASSERT_FALSE(record) << row.text.substr(0, 300);
    EXPECT_EQ(record.error().code, Code::kInvalid);
    EXPECT_THAT(record.error().message, HasSubstr(row.why)) << row.text.substr(0, 300);
  }
}

TEST(PublishedRecord, NoPartOfOneIsOne) {
  const auto text = to_annotation(good());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse_published_record(text.substr(0, size))) << size;
  }
}

TEST(PublishedRecord, OnlyCausesOfSlurmctldAreReadFromAFailure) {
  const struct {
    SlurmFailure cause;
    const char* text;
    bool slurmctld;
  } kRows[] = {
      {SlurmFailure::kControllerUnreachable, "ControllerUnreachable: x", true},
      {SlurmFailure::kTimeout, "ControllerTimeout: x", true},
      {SlurmFailure::kRateLimited, "ControllerRateLimited: x", true},
      {SlurmFailure::kMungeUnavailable, "munge unavailable: x", false},
      {SlurmFailure::kCommandMissing, "command missing: x", false},
  };
  for (const auto& row : kRows) {
    EXPECT_EQ(failure_text({row.cause, "x"}), row.text);
    EXPECT_EQ(controller_cause(row.text), row.slurmctld ? std::optional{row.cause} : std::nullopt);
  }
  for (const char* text : {"", "ControllerUnreachable", "x ControllerUnreachable: y"}) {
    EXPECT_FALSE(controller_cause(text)) << text;
  }
}

}  // namespace published_record_test
}  // namespace slurmlet::slurm
