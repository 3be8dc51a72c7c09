#pragma once

// The directory that `slurmlet feed` fills (feed_format.h), seen by its only writer. Every file is
// written beside its place and renamed, so that a daemon reads the old one or the new one, never
// half of one. No symbolic link is followed, neither for the directory nor in it, and a directory
// that everybody may write to is refused: what lies there is what all nodes of a site believe.
//
// Nothing is flushed to disk: after a crash of the machine the header is old, and the first dump
// rewrites every file that is not as it should be. Blocks on the file system; for the reader's own
// process only. Not thread-safe.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace slurmlet::slurm {

struct FeedChanges {
  std::size_t written = 0;
  std::size_t removed = 0;
};

class FeedDirectory {
 public:
  // Makes the directory (mode 0755) when only its last part is missing, and takes its lock. kDenied
  // when others could write there, kConflict when another reader holds it.
  static Result<FeedDirectory> open(const std::string& path);

  // Makes nodes/ hold exactly these records; writes only what has changed. Names must be
  // is_feed_file_name(). After an error some files are new and some are old.
  Result<FeedChanges> replace(const std::map<std::string, std::string>& records);

  Status write_header(std::string_view text);
  std::optional<std::string> read_header() const;
  const std::string& path() const { return path_; }

 private:
  FeedDirectory(std::string path, UniqueFd top, UniqueFd nodes, UniqueFd lock)
      : path_(std::move(path)),
        top_(std::move(top)),
        nodes_(std::move(nodes)),
        lock_(std::move(lock)) {}
  Result<std::set<std::string>> names() const;  // of the nodes that have a file

  std::string path_;
  UniqueFd top_;
  UniqueFd nodes_;
  UniqueFd lock_;  // held as long as we live; nothing where the file system has no locks
  std::map<std::string, std::string> known_;  // what the files hold
};

// A regular file below an open directory, no link followed. kNotFound; kInvalid when it is no file
// or longer than max_bytes; kDenied, kInternal.
Result<std::string> read_file_at(int directory, const char* name, std::size_t max_bytes);

}  // namespace slurmlet::slurm
