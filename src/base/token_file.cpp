#include "base/token_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "base/try.h"

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

Result<std::optional<TokenFile::Content>> TokenFile::read(const std::filesystem::path& path,
                                                          const std::optional<FileStamp>& before) {
  touches_file(path.string());
  // Before reading: a file replaced in between is read once more at the next look.
  const auto stamp = file_stamp(path);
  if (!stamp) {
    return errno_error(errno, "token file " + path.string());
  }
  if (stamp == before) {
    return std::optional<Content>{};
  }
  const auto content = read_file(path, kMaxTokenBytes);
  if (!content) {
    return content.error().with_prefix("token file");
  }
  return std::optional{Content{*stamp, TRY(checked_token(*content, path))}};
}

TokenFile::TokenFile(std::filesystem::path path, const Clock& clock, Read reader)
    : path_(std::move(path)), clock_(clock), read_(std::move(reader)) {}

std::string TokenFile::token(Duration patience) {
  const std::lock_guard lock(mutex_);
  look(patience);
  return held();
}

std::string TokenFile::held() const {
  const auto token = token_.get();
  return token ? *token : "";
}

std::optional<Error> TokenFile::last_error() {
  const std::lock_guard lock(mutex_);
  look(kFilePatience);
  return error_;
}

void TokenFile::look_again() {
  const std::lock_guard lock(mutex_);
  looked_at_.reset();
}

void TokenFile::look(Duration patience) {
  const SteadyTime now = clock_.now().steady;
  if (looked_at_ && now - *looked_at_ < kCheckInterval) {
    return;
  }
  looked_at_ = now;
  auto content = in_time(
      look_, [read = read_, path = path_, stamp = stamp_] { return read(path, stamp); }, now,
      patience);
  error_.reset();
  if (!content) {
    error_ = content.error();
  } else if (*content) {
    stamp_ = (*content)->stamp;
    token_.set(std::move((*content)->token));
  }
}

}  // namespace slurmlet
