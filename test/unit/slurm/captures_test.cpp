// Every capture of every release against test/fixtures/slurm/expected.tsv, which a person can check
// against the files, and which was not made with these parsers (make_expected.py beside it).

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rfc3339.h"
#include "base/text.h"
#include "fixture.h"
#include "node/slurm_failure.h"
#include "rest_capture.h"
#include "slurm/answers/node_json.h"
#include "slurm/answers/scontrol_text.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {
namespace captures_test {

using Row = std::map<std::string, std::string>;         // column → cell
using Table = std::map<std::string, std::vector<Row>>;  // "24.11/idle.out" → its lines

const Table& expected() {
  static const Table table = [] {
    Table out;
    const std::string text = fixture("expected.tsv");
    std::vector<std::string> columns;
    for (const auto line : split(trim(text), '\n')) {
      const auto cells = split(line, '\t');
      if (columns.empty()) {
        columns.assign(cells.begin(), cells.end());
        continue;
      }
      EXPECT_EQ(cells.size(), columns.size()) << line;
      Row row;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        row[columns.at(i)] = cells[i];
      }
      out[row["release"] + "/" + row["file"]].push_back(row);
    }
    return out;
  }();
  return table;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\\' ? "\\\\" : std::string{c};
  }
  return out.empty() ? "-" : out;
}

std::string cell(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "-";
}

// As Slurm prints them.
std::string cell(const std::vector<node::Gres>& entries) {
  std::vector<std::string> words;
  for (const auto& gres : entries) {
    std::string word =
        gres.name + (gres.type.empty() ? "" : ":" + gres.type) + ":" + std::to_string(gres.count);
    word += gres.sockets.empty() ? "" : "(S:" + gres.sockets + ")";
    word += gres.indices.empty() ? "" : "(IDX:" + gres.indices + ")";
    word += gres.shares.empty() ? "" : "(" + gres.shares + ")";
    words.push_back(word);
  }
  return escaped(join(words, ","));
}

Row row_of(const node::SlurmNodeRecord& record) {
  const bool has_reason = !record.reason.empty();
  return {{"node", escaped(record.name)},
          {"state", escaped(record.state.raw())},
          {"cpus", cell(record.cpus)},
          {"effective_cpus", cell(record.effective_cpus)},
          {"alloc_cpus", cell(record.allocated_cpus)},
          {"real_memory", cell(record.real_memory_mib)},
          {"alloc_memory", cell(record.allocated_memory_mib)},
          {"free_memory", cell(record.free_memory_mib)},
          {"gres", cell(record.gres)},
          {"gres_used", cell(record.gres_used)},
          {"partitions", record.partitions_known ? escaped(join(record.partitions, ",")) : "?"},
          {"features", escaped(join(record.features, ","))},
          {"reason", escaped(record.reason)},
          {"reason_user", has_reason ? escaped(record.reason_user) : "-"},
          {"reason_time", has_reason && record.reason_time ? rfc3339(*record.reason_time) : "-"},
          {"version", escaped(record.version)},
          {"hostname", escaped(record.hostname)}};
}

// By the parser of the command that printed it.
NodesAnswer parse(const std::string& source, const std::string& file) {
  if (source == "slurmrestd") {
    const auto capture = rest_capture(file);
    return parse_nodes_json(capture.body, capture.status);
  }
  NodesAnswer out;
  if (source == "error message") {
    out.failure = known_failure(fixture(file));
    return out;
  }
  return parse_scontrol_nodes(fixture(file));
}

std::vector<Row> rows_of(const NodesAnswer& answer) {
  std::vector<Row> rows;
  for (const auto& record : answer.nodes) {
    rows.push_back(row_of(record));
  }
  if (answer.failure) {
    rows.push_back(row_of({}));
  }
  for (auto& row : rows) {
    row["failure"] = answer.failure ? to_string(answer.failure->cause) : "-";
  }
  return rows;
}

// Every cell that differs, so that one run shows all there is to judge.
void compare(const std::string& file, const std::vector<Row>& wanted, const NodesAnswer& answer) {
  const std::vector<Row> got = rows_of(answer);
  EXPECT_EQ(got.size(), wanted.size()) << file;
  EXPECT_TRUE(answer.failure || answer.not_understood.empty())
      << file << ": " << join(answer.not_understood, ", ");
  for (std::size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    for (const auto& [column, value] : got[i]) {
      const std::string& expects = wanted[i].at(column);
      if (expects != "?") {
        EXPECT_EQ(value, expects) << file << ": " << column;
      }
    }
  }
}

struct Form {
  std::string release, source;
};

class Captures : public testing::TestWithParam<Form> {
 protected:
  // Times of the text forms are local time; the captures were taken in UTC.
  static void SetUpTestSuite() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
};

TEST_P(Captures, SayWhatTheTableSays) {
  const auto& [release, source] = GetParam();
  int files = 0;
  for (const auto& [file, rows] : expected()) {
    if (rows[0].at("release") != release || rows[0].at("source") != source) {
      continue;
    }
    ++files;
    if (source == "-") {
      EXPECT_TRUE(parse_scontrol_nodes(fixture(file)).nodes.empty())
          << file << ": it is " << rows[0].at("note");
    } else {
      compare(file, rows, parse(source, file));
    }
  }
  EXPECT_GT(files, 0);
}

std::vector<Form> forms() {
  std::vector<Form> out{{"stale-single-rpc", "-"}};
  for (const auto& release : kReleases) {
    for (const char* source : {"-", "error message", "scontrol show node", "slurmrestd"}) {
      out.push_back({release, source});
    }
  }
  return out;
}

std::string test_name(const testing::TestParamInfo<Form>& info) {
  std::string name =
      info.param.release + "_" + (info.param.source == "-" ? "no_answers" : info.param.source);
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(OfEachRelease, Captures, testing::ValuesIn(forms()), test_name);

TEST(CaptureTable, KnowsEveryFileAndNoOther) {
  std::set<std::string> files;
  const auto root = fixture_path("");
  for (const auto& entry : std::filesystem::recursive_directory_iterator{root}) {
    const std::string name = std::filesystem::relative(entry.path(), root).string();
    // Dumps of all nodes are held by record_text_test.cpp.
    const bool in_a_release = name.find('/') != std::string::npos && !name.starts_with("dump/");
    if (entry.is_regular_file() && in_a_release && entry.path().extension() != ".cmd") {
      files.insert(name);
    }
  }
  std::set<std::string> known;
  for (const auto& [file, rows] : expected()) {
    known.insert(file);
  }
  EXPECT_GT(known.size(), 500U);
  for (const auto& file : files) {
    EXPECT_TRUE(known.contains(file)) << file << " is not in expected.tsv; see make_expected.py";
  }
  for (const auto& file : known) {
    EXPECT_TRUE(files.contains(file)) << file << " is in expected.tsv only";
  }
}

TEST(CaptureTable, HasNoLineThatNoTestReads) {
  std::set<std::string> read;
  for (const auto& form : forms()) {
    read.insert(form.release + " " + form.source);
  }
  for (const auto& [file, rows] : expected()) {
    for (const auto& row : rows) {
      EXPECT_TRUE(read.contains(row.at("release") + " " + row.at("source"))) << file;
    }
  }
}

}  // namespace captures_test
}  // namespace slurmlet::slurm
