#include "base/token_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace slurmlet {

namespace {

constexpr std::size_t kMaxTokenBytes = std::size_t{64} << 10;

// The token goes into a header line: anything but visible ASCII could end that line.
Result<std::string> checked_token(std::string_view content, const std::filesystem::path& path) {
  const std::string_view token = trim(content);
  if (token.empty()) {
    return Error{Code::kInvalid, "token file " + path.string() + " is empty"};
  }
  if (!std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; })) {
    return Error{Code::kInvalid,
                 "token file " + path.string() +
                     " contains more than one word; it must contain only the token"};
  }
  return std::string(token);
}

}  // namespace

TokenFile::TokenFile(std::filesystem::path path, const Clock& clock)
    : path_(std::move(path)), clock_(clock) {}

std::string TokenFile::token() {
  const std::lock_guard lock(mutex_);
  look();
  return held();
}

std::string TokenFile::held() const {
  const auto token = token_.get();
  return token ? *token : "";
}

std::optional<Error> TokenFile::last_error() {
  const std::lock_guard lock(mutex_);
  look();
  return error_;
}

void TokenFile::look_again() {
  const std::lock_guard lock(mutex_);
  looked_at_.reset();
}

void TokenFile::look() {
  const SteadyTime now = clock_.now().steady;
  if (looked_at_ && now - *looked_at_ < kCheckInterval) {
    return;
  }
  looked_at_ = now;
  const auto stamp = file_stamp(path_);
  if (!stamp) {
    error_ = errno_error(errno, "token file " + path_.string());
    return;
  }
  if (stamp_ == stamp) {
    error_.reset();
    return;
  }
  const auto content = read_file(path_, kMaxTokenBytes);
  if (!content) {
    error_ = content.error().with_prefix("token file");
    return;
  }
  auto token = checked_token(*content, path_);
  if (!token) {
    error_ = token.error();
    return;
  }
  // Stamped before reading: a file replaced in between is read once more at the next look.
  stamp_ = stamp;
  token_.set(*std::move(token));
  error_.reset();
}

}  // namespace slurmlet
