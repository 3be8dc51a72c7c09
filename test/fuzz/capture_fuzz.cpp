// Fuzzes the reader of captured answers (slurm/answers/capture.h), and through it those of
// scontrol's text, of JSON, of sinfo's rows and of error messages.
//
// Beside what the sanitizers find: what comes out is valid UTF-8, not much longer than what went
// in, and either nodes or a failure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/plain_text.h"
#include "slurm/answers/capture.h"

namespace {

using slurmlet::node::Gres;
using slurmlet::node::SlurmNodeRecord;
using slurmlet::slurm::Capture;

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

// A byte that is not UTF-8 becomes three; words around it are ours.
class Checker {
 public:
  explicit Checker(std::size_t input) : longest_(3 * input + 400) {}

  void text(const std::string& value) const {
    require(value.size() <= longest_);
    require(slurmlet::valid_utf8(value) == value);
  }

  template <typename Texts>
  void texts(const Texts& values) const {
    for (const auto& value : values) {
      text(value);
    }
  }

  void gres(const std::vector<Gres>& entries) const {
    for (const auto& entry : entries) {
      require(!entry.name.empty() && entry.count >= 0);
      for (const auto& value :
           {entry.name, entry.type, entry.sockets, entry.indices, entry.shares}) {
        text(value);
      }
    }
  }

  void record(const SlurmNodeRecord& record) const {
    for (const auto& value :
         {record.name, record.hostname, record.state.base, record.state.raw(), record.gres_drained,
          record.reason, record.reason_user, record.version, record.cluster, record.next_state,
          record.reservation, record.comment, record.extra, record.instance_id,
          record.instance_type, record.operating_system, record.architecture}) {
      text(value);
    }
    texts(record.state.flags);
    texts(record.partitions);
    texts(record.features);
    texts(record.active_features);
    gres(record.gres);
    gres(record.gres_used);
    for (const auto& number :
         {record.cpus, record.effective_cpus, record.allocated_cpus, record.real_memory_mib,
          record.allocated_memory_mib, record.mem_spec_limit_mib, record.free_memory_mib}) {
      require(number.value_or(0) >= 0);
    }
  }

 private:
  std::size_t longest_;
};

bool is_known_source(const std::string& source) {
  constexpr std::string_view kSources[] = {"sinfo",
                                           "sinfo --json",
                                           "scontrol show node",
                                           "scontrol show node --json",
                                           "slurmrestd",
                                           "error message",
                                           "unknown",
                                           "scontrol show slurmd"};
  return std::find(std::begin(kSources), std::end(kSources), source) != std::end(kSources);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Capture capture =
      slurmlet::slurm::parse_capture({reinterpret_cast<const char*>(data), size});
  const Checker check{size};
  require(is_known_source(capture.source));
  require(capture.nodes.empty() || !capture.failure);
  require(capture.source != "unknown" || !capture.slurmd);
  // A host list of a few bytes stands for many nodes.
  require(capture.nodes.size() <= std::max<std::size_t>(size, 200'000));
  for (const auto& record : capture.nodes) {
    check.record(record);
  }
  check.text(capture.api_version);
  check.text(capture.slurm_version);
  check.text(capture.cluster);
  check.texts(capture.not_understood);
  require(capture.not_understood.size() <= size + 1);
  require(capture.http_status >= 0 && capture.http_status <= 999);
  if (capture.failure) {
    check.text(capture.failure->detail);
    require(capture.failure->detail.find('\n') == std::string::npos);
  }
  if (capture.slurmd) {
    check.text(capture.slurmd->node_name);
    check.text(capture.slurmd->version);
    check.texts(capture.slurmd->active_steps);
  }
  return 0;
}
