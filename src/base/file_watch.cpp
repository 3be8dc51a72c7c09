#include "base/file_watch.h"

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/inotify.h"

namespace slurmlet {

namespace fs = std::filesystem;

namespace {

// Moved or removed itself, or (by its parent's move) no longer on the way.
constexpr std::uint32_t kSelf = IN_MOVE_SELF | IN_DELETE_SELF;
// Not IN_MODIFY: a log in the same directory would wake us at each line.
constexpr std::uint32_t kEntries =
    kSelf | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE;

// A way that changes each time it is walked is left to its next event.
constexpr int kMaxWalks = 8;

enum class Kind { kDirectory, kLink, kOther };

Kind kind_of(const fs::path& path) {
  touches_file(path.native());
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    return Kind::kOther;
  }
  return S_ISDIR(info.st_mode)   ? Kind::kDirectory
         : S_ISLNK(info.st_mode) ? Kind::kLink
                                 : Kind::kOther;
}

void prepend(std::deque<fs::path>& parts, const fs::path& path) {
  const fs::path relative = path.relative_path();
  parts.insert(parts.begin(), relative.begin(), relative.end());
}

}  // namespace

class FileWatch::Ways {
 public:
  explicit Ways(Files files) : files_(std::move(files)) {}
  int fd() const { return inotify_.fd(); }
  Files changed();

 private:
  struct Watch {
    fs::path directory;
    bool entries = false;                       // else the directory's own moves only
    std::multimap<std::string, fs::path> ends;  // name in it -> file it is the end of
  };
  using Watches = std::map<int, Watch>;

  std::set<fs::path> settle();
  bool watch_ways();
  void watch_way(const fs::path& file, Watches& fresh);
  Watch* add(const fs::path& directory, bool entries, Watches& fresh);

  Inotify inotify_;
  Files files_;
  std::map<fs::path, std::optional<FileStamp>> seen_;
  Watches watches_;
};

FileWatch::FileWatch(Files files) {
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  ways_ = std::make_shared<Ways>(std::move(files));
  inotify_fd_ = ways_->fd();
  (void)changed();
}

FileWatch::Files FileWatch::changed() {
  auto files = in_time(reading_, [ways = ways_] { return Result{ways->changed()}; });
  problem_ = files ? "" : files.error().message;
  return files ? *std::move(files) : Files{};
}

FileWatch::Files FileWatch::Ways::changed() {
  const auto written = settle();
  Files out;
  for (const auto& file : files_) {
    touches_file(file.native());
    const auto now = file_stamp(file);
    auto& before = seen_[file];
    if (now != before || written.contains(file)) {
      out.push_back(file);
      before = now;
    }
  }
  return out;
}

// Reads the events and watches the ways as they are now, until both agree. Returns the files that
// were written to: two writes within one tick of the file system's clock have the same stamp.
std::set<fs::path> FileWatch::Ways::settle() {
  std::set<fs::path> written;
  for (int walk = 0; walk < kMaxWalks; ++walk) {
    for (const auto& event : inotify_.read()) {
      const auto watch = watches_.find(event.watch);
      if ((event.mask & IN_CLOSE_WRITE) != 0 && watch != watches_.end()) {
        const auto [first, last] = watch->second.ends.equal_range(event.name);
        std::for_each(first, last, [&](const auto& end) { written.insert(end.second); });
      }
    }
    if (!watch_ways()) {
      break;
    }
  }
  return written;
}

// True when there are other watches than before.
bool FileWatch::Ways::watch_ways() {
  Watches fresh;
  for (const auto& file : files_) {
    watch_way(file, fresh);
  }
  bool other = false;
  for (const auto& [number, watch] : watches_) {
    const auto still = fresh.find(number);
    if (still == fresh.end()) {
      inotify_.remove(number);
      other = true;
    } else if (watch.entries && !still->second.entries) {
      // A mask only grows, hence a new watch for a smaller one.
      const Watch smaller = still->second;
      inotify_.remove(number);
      fresh.erase(still);
      add(smaller.directory, false, fresh);
      other = true;
    }
  }
  for (const auto& [number, watch] : fresh) {
    other = other || !watches_.contains(number);
  }
  watches_ = std::move(fresh);
  return other;
}

// One component after the other, as the kernel goes; each directory is watched before it is read
// into, or what happens in between would be missed.
void FileWatch::Ways::watch_way(const fs::path& file, Watches& fresh) {
  std::error_code error;
  const fs::path absolute = fs::absolute(file, error);
  if (error) {
    return;
  }
  fs::path at = absolute.root_path();
  std::deque<fs::path> left;
  prepend(left, absolute);
  int links = 0;
  while (!left.empty()) {
    const fs::path part = left.front();
    left.pop_front();
    if (part.empty() || part == ".") {
      continue;
    }
    if (part == "..") {
      at = at.parent_path();
      continue;
    }
    const fs::path next = at / part;
    add(at, false, fresh);
    if (kind_of(next) != Kind::kDirectory || left.empty()) {
      if (Watch* watch = add(at, true, fresh); watch != nullptr && left.empty()) {
        watch->ends.emplace(part.string(), file);
      }
    }
    const Kind kind = kind_of(next);
    if (kind == Kind::kDirectory) {
      at = next;
      continue;
    }
    if (kind != Kind::kLink || ++links > kMaxLinks) {
      return;
    }
    const fs::path target = fs::read_symlink(next, error);
    if (error) {
      return;
    }
    prepend(left, target);
    if (target.is_absolute()) {
      at = target.root_path();
    }
  }
}

FileWatch::Ways::Watch* FileWatch::Ways::add(const fs::path& directory, bool entries,
                                             Watches& fresh) {
  const auto number = inotify_.add(directory.string(), entries ? kEntries : kSelf);
  if (!number) {
    return nullptr;
  }
  Watch& watch = fresh[*number];
  watch.directory = directory;
  watch.entries = watch.entries || entries;
  return &watch;
}

}  // namespace slurmlet
