#pragma once

// Notices that files were replaced: written, renamed over, or reached through a symbolic link (of
// the file or of a directory on the way to it) that now points elsewhere, as cert-manager,
// Kubernetes' projected volumes and `ln -sfn` do. Event-driven (inotify(7)): the entries of every
// directory that the way to a file leads through a link or ends in, the moves of the others on the
// way. fd() becomes readable when something may have happened; changed() then compares what the
// paths lead to (device, inode, size, mtime) and adds what was written to. Call changed() now and
// then anyway (file systems of other hosts send no events). A file that does not exist is waited
// for, and so is its directory. Not thread-safe.

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file_stamp.h"
#include "base/inotify.h"

namespace slurmlet {

class FileWatch {
 public:
  explicit FileWatch(std::vector<std::filesystem::path> files = {});

  // Other files from now on; what is there now counts as seen.
  void set_files(std::vector<std::filesystem::path> files);

  // Descriptor to wait on; -1 when the kernel gave none.
  int fd() const { return inotify_.fd(); }

  // The files whose content may be another since the last call. Empties fd().
  std::vector<std::filesystem::path> changed();

 private:
  struct Watch {
    std::filesystem::path directory;
    bool entries = false;                                    // else the directory's own moves only
    std::multimap<std::string, std::filesystem::path> ends;  // name in it -> file it is the end of
  };
  using Watches = std::map<int, Watch>;

  std::set<std::filesystem::path> settle();
  bool watch_ways();
  void watch_way(const std::filesystem::path& file, Watches& fresh);
  Watch* add(const std::filesystem::path& directory, bool entries, Watches& fresh);

  Inotify inotify_;
  std::vector<std::filesystem::path> files_;
  std::map<std::filesystem::path, std::optional<FileStamp>> seen_;
  Watches watches_;
};

}  // namespace slurmlet
