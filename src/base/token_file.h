#pragma once

// A bearer token in a file that somebody rotates (a projected service-account token, a
// kubelet-style token file). The file is checked no more than every kCheckInterval and read again
// when it is another one (base/file.h); a file that went missing, became unreadable or does not
// answer leaves the last token in use, as client-go does.
//
// Thread-safe.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/detached_task.h"
#include "base/file.h"
#include "base/published.h"
#include "base/result.h"

namespace slurmlet {

class TokenFile {
 public:
  static constexpr Duration kCheckInterval = std::chrono::seconds{10};

  // `clock` must outlive this object.
  TokenFile(std::filesystem::path path, const Clock& clock);

  // The token now; "" when there never was one. Looks at the file if that is due, aside, and waits
  // a moment for it.
  std::string token();
  // The token as last read. Never waits for the file: for the thread that renews the lease.
  std::string held() const;
  // Why the last reading of the file gave no token, naming the file; nothing if it did. kTimeout:
  // the file does not answer.
  std::optional<Error> last_error();

  // Takes the token that is in the file now. On this thread: may hang.
  Status reload();

 private:
  void check();
  Status take(std::optional<StampedFile> file);

  const std::filesystem::path path_;
  const Clock& clock_;
  std::mutex mutex_;  // of readings
  std::atomic<std::uint64_t> reloads_ = 0;
  std::uint64_t last_reload_ = 0;  // that ended
  DetachedTask<Result<std::optional<StampedFile>>> reading_;
  std::optional<SteadyTime> checked_at_;
  std::optional<FileStamp> stamp_;  // of the file that token_ is from
  Published<std::string> token_;
  std::optional<Error> error_;
};

}  // namespace slurmlet
