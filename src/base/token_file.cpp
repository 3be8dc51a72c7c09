#include "base/token_file.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace slurmlet {

namespace {

constexpr std::size_t kMaxTokenBytes = std::size_t{64} << 10;

// The token goes into a header line: anything but visible ASCII could end that line.
Result<std::string> checked_token(std::string_view content, const std::filesystem::path& path) {
  const auto text = utf8_text(content);
  if (!text) {
    return text.error().with_prefix("token file " + path.string());
  }
  const std::string_view token = trim(*text);
  if (token.empty()) {
    return Error{Code::kInvalid, "token file " + path.string() + " is empty"};
  }
  if (!std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; })) {
    return Error{Code::kInvalid,
                 "token file " + path.string() +
                     " contains more than one word, or a character that is not ASCII; it must "
                     "contain only the token"};
  }
  return std::string(token);
}

}  // namespace

TokenFile::TokenFile(std::filesystem::path path, const Clock& clock)
    : path_(std::move(path)), clock_(clock) {}

std::string TokenFile::token() {
  const std::lock_guard lock(mutex_);
  check();
  return held();
}

std::string TokenFile::held() const {
  const auto token = token_.get();
  return token ? *token : "";
}

std::optional<Error> TokenFile::last_error() {
  const std::lock_guard lock(mutex_);
  check();
  return error_;
}

Status TokenFile::reload() {
  const std::uint64_t number = ++reloads_;
  auto file = read_if_changed(path_, std::nullopt, kMaxTokenBytes);
  const std::lock_guard lock(mutex_);
  if (number < last_reload_) {
    return {};  // it hung, and another has read a newer one meanwhile
  }
  last_reload_ = number;
  return file ? take(*std::move(file)) : file.error().with_prefix("token file");
}

void TokenFile::check() {
  const SteadyTime now = clock_.now().steady;
  if (checked_at_ && now - *checked_at_ < kCheckInterval) {
    return;
  }
  checked_at_ = now;
  auto file = in_time(reading_, [path = path_, stamp = stamp_] {
    return read_if_changed(path, stamp, kMaxTokenBytes);
  });
  const Status taken = file ? take(*std::move(file)) : file.error().with_prefix("token file");
  error_ = taken ? std::nullopt : std::optional{taken.error()};
}

Status TokenFile::take(std::optional<StampedFile> file) {
  if (file) {
    token_.set(TRY(checked_token(file->content, path_)));
    stamp_ = file->stamp;
  }
  return {};
}

}  // namespace slurmlet
