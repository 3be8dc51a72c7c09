#pragma once

// A bearer token in a file that somebody rotates (a projected service-account token, a
// kubelet-style token file). The file is looked at no more than every kCheckInterval and read again
// when it is another one (inode, size or modification time); a file that went missing, became
// unreadable or does not answer leaves the last token in use, as client-go does.
//
// Thread-safe.

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file_stamp.h"
#include "base/published.h"
#include "base/result.h"
#include "base/side_call.h"

namespace slurmlet {

class TokenFile {
 public:
  static constexpr Duration kCheckInterval = std::chrono::seconds{10};

  struct Content {
    FileStamp stamp;
    std::string token;
  };
  // Nothing where the file is still the one of `before`. Thread-safe; may hang.
  using Read = std::function<Result<std::optional<Content>>(
      const std::filesystem::path& path, const std::optional<FileStamp>& before)>;
  static Result<std::optional<Content>> read(const std::filesystem::path& path,
                                             const std::optional<FileStamp>& before);

  // `clock` must outlive this object.
  TokenFile(std::filesystem::path path, const Clock& clock, Read reader = read);

  // The token now; "" when there never was one. Looks at the file if that is due, aside, and waits
  // no longer than `patience`.
  std::string token(Duration patience = kFilePatience);
  // The token of the last look. Never waits for the file: for the thread that renews the lease.
  std::string held() const;
  // The next token() looks at the file, however short ago the last look was.
  void look_again();
  // Why the last look at the file gave no token, naming the file; nothing if it did. kTimeout: the
  // file does not answer.
  std::optional<Error> last_error();

 private:
  void look(Duration patience);

  const std::filesystem::path path_;
  const Clock& clock_;
  const Read read_;
  std::mutex mutex_;  // of looks
  SideCall<Result<std::optional<Content>>> look_;
  std::optional<SteadyTime> looked_at_;
  std::optional<FileStamp> stamp_;  // of the file that token_ is from
  Published<std::string> token_;
  std::optional<Error> error_;
};

}  // namespace slurmlet
