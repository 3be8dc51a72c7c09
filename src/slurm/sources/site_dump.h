#pragma once

// The query for all nodes of a cluster, by slurmrestd (rest_dump.h), or by its commands:
// `scontrol --local -a -d -o show node` (`sinfo -N` compares all rows: ADR 12). For such a query
// slurmctld computes what is allocated, so that is fresh here.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/command.h"
#include "base/result.h"
#include "slurm/answers/slurm_client.h"

namespace slurmlet::slurm {

using DumpRecords = std::map<std::string, std::string>;  // node → its record (record_text.h)

// One dump at a time; never blocks. Not thread-safe.
class DumpSource {
 public:
  struct Answer {
    std::optional<DumpRecords> records;  // nothing: those of the last good dump still hold
    Duration took{};
    std::string cluster = {};  // that the answer names; "" if none
  };
  virtual ~DumpSource() = default;
  // `or_unchanged`: that nothing has changed since the last good dump is an answer too.
  virtual Status start(Now now, bool or_unchanged) = 0;
  virtual bool running() const = 0;
  virtual SteadyTime deadline() const = 0;
  virtual std::vector<int> wake_fds() const = 0;
  // Nothing while it runs. An Error has the text that PublishedRecord::failure has.
  virtual std::optional<Result<Answer>> poll(Now now) = 0;
};

class ScontrolDump final : public DumpSource {
 public:
  ScontrolDump(ClientSettings settings, std::unique_ptr<CommandRunner> runner)
      : settings_(std::move(settings)), runner_(std::move(runner)) {}
  Status start(Now now, bool or_unchanged) override;
  bool running() const override { return runner_->running(); }
  SteadyTime deadline() const override { return runner_->deadline(); }
  std::vector<int> wake_fds() const override { return runner_->wake_fds(); }
  std::optional<Result<Answer>> poll(Now now) override;

 private:
  ClientSettings settings_;
  std::unique_ptr<CommandRunner> runner_;
  std::string nonce_;  // of the dump under way
};

// Longest answer that is read for the sake of one node: 5 kB for each of 3,000.
inline constexpr std::size_t kMaxDumpOfNode = std::size_t{16} << 20;

// Times in the answer are Unix seconds with `nonce` behind them (digits and letters): in a line
// that a user has written into a Comment to pass for another node's record it cannot be.
CommandSpec dump_query(const ClientSettings& settings, const std::string& nonce,
                       const std::string& node = "");
Result<std::string> new_nonce();
// Why the answer cannot be used, as failure_text() puts it (published_record.h); nothing when it is
// worth splitting. Stable words.
std::optional<std::string> dump_query_failure(const CommandOutput& output);

// The answer as one text for each node, which ends with a line break. Load and free memory are
// struck out (N/A): they change with each ping of slurmctld, and the node itself knows better. A
// line that begins no record goes on with the one before it (line breaks in a Reason), and so does
// one without the nonce of a node that has one with it. Where that does not decide, what pretends
// to be a second record of a node is kept with the first, for the daemon to reject. kInvalid when
// it is no list of nodes. `only`: the text of this node alone, none where it is not in the list.
Result<DumpRecords> split_dump(std::string_view text, std::string_view nonce = "",
                               std::string_view only = "");

}  // namespace slurmlet::slurm
