// Fuzzes what the daemon reads of sinfo at each question (slurm/answers/sinfo.h): the input up to
// the first zero byte is its stdout, what follows its stderr; the last byte chooses how it ended.
//
// Beside what the sanitizers find: exactly one of a record and a failure, the record is of the node
// that was asked for, and details are one line that does not change when it is read again.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/plain_text.h"
#include "slurm/answers/sinfo.h"

namespace {

using slurmlet::CommandOutput;

constexpr std::string_view kNode = "nid000001";

void require(bool good) {
  if (!good) {
    std::abort();
  }
}

CommandOutput output_of(std::string_view input) {
  CommandOutput output;
  if (input.empty()) {
    return output;
  }
  const auto how = static_cast<unsigned char>(input.back());
  input.remove_suffix(1);
  const auto zero = input.find('\0');
  output.out = input.substr(0, zero);
  output.err = zero == std::string_view::npos ? std::string_view{} : input.substr(zero + 1);
  output.exit_code = how % 4 == 0 ? 0 : how % 128;
  output.timed_out = how % 16 == 15;
  output.too_long = how % 32 == 31;
  output.signal = how >= 250 ? how - 245 : 0;
  return output;
}

bool is_utf8(const std::string& text) { return slurmlet::valid_utf8(text) == text; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const CommandOutput output = output_of({reinterpret_cast<const char*>(data), size});
  const auto result = slurmlet::slurm::interpret(output, kNode);
  require(result.record.has_value() != result.failure.has_value());
  if (result.record) {
    require(result.record->name == kNode);
    require(!result.record->state.base.empty() && is_utf8(result.record->state.raw()));
    require(is_utf8(result.record->reason) && is_utf8(result.record->version));
    require(result.record->cpus.value_or(0) >= 0);
  } else {
    const std::string& detail = result.failure->detail;
    require(is_utf8(detail) && detail.find_first_of("\r\n") == std::string::npos);
    require(detail.size() <= 3 * size + 400);
  }
  // classify() alone: what is worth parsing is parsed, what is not is a failure with its cause.
  const auto failure = slurmlet::slurm::classify(output);
  require(!failure || result.failure == failure);
  if (!failure) {
    const auto parsed = slurmlet::slurm::parse_sinfo(output.out, kNode);
    require(static_cast<bool>(parsed) == result.record.has_value());
  }
  return 0;
}
