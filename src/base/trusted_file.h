#pragma once

// Files that decide what this process, or one that it starts, does: such a file counts only if
// nobody but root, our own user and the users given can change it, or put another in its place.
//
// Every component of the path is checked, from "/" on, through symbolic links, by descriptor:
// - its owner is one of those users;
// - others may not write to it; its group may where it is one of the groups given and there is no
//   access control list;
// - it does not lie on a file system that another user mounted with FUSE, whose owners are his
// word;
// - a directory with the sticky bit (/tmp) may be written to by all, since there only the owner of
//   an entry can replace it; what is named in it must exist.
// Only regular files are opened, so nothing waits for the other end of a FIFO.

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace slurmlet {

// Beside our own user, for files.
struct TrustedUsers {
  std::vector<uid_t> uids{0};
  std::vector<gid_t> gids{0};  // may write to files as well
  bool operator==(const TrustedUsers&) const = default;
};

// kInvalid when somebody else may change it: the message names the component, its owner and the
// fix. Otherwise as read_file().
Result<UniqueFd> open_trusted(const std::filesystem::path& path, const TrustedUsers& users);
Result<std::string> read_trusted_file(const std::filesystem::path& path, const TrustedUsers& users,
                                      std::size_t max_bytes = kMaxFileBytes);

// One path, or two that lead to one file which counts.
bool same_trusted_file(const std::string& a, const std::string& b, const TrustedUsers& users);

}  // namespace slurmlet
