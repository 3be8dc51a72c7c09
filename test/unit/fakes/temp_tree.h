#pragma once

// A directory below the system's temporary one, filled by the test and removed with the object.
// Paths are relative to its root. Failures to make a file end the test program: a test on half a
// tree would say nothing.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace slurmlet::fakes {

class TempTree {
 public:
  TempTree() {
    std::string name = (std::filesystem::temp_directory_path() / "slurmlet-test-XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, name);
    root_ = name;
  }
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path path(std::string_view relative) const { return root_ / relative; }

  TempTree& file(std::string_view relative, std::string_view content, mode_t mode = 0644) {
    dir(std::filesystem::path{relative}.parent_path().string());
    std::ofstream out{path(relative), std::ios::binary | std::ios::trunc};
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    out.close();
    require(!out.fail() && ::chmod(path(relative).c_str(), mode) == 0, std::string{relative});
    return *this;
  }
  TempTree& dir(std::string_view relative) {
    std::error_code error;
    std::filesystem::create_directories(path(relative), error);
    require(!error, std::string{relative});
    return *this;
  }
  TempTree& symlink(const std::filesystem::path& target, std::string_view relative) {
    dir(std::filesystem::path{relative}.parent_path().string());
    std::error_code error;
    std::filesystem::create_symlink(target, path(relative), error);
    require(!error, std::string{relative});
    return *this;
  }
  TempTree& remove(std::string_view relative) {
    std::error_code ignored;
    std::filesystem::remove_all(path(relative), ignored);
    return *this;
  }

  bool exists(std::string_view relative) const {
    std::error_code ignored;
    return std::filesystem::exists(path(relative), ignored);
  }
  // "" if there is no such file.
  std::string content(std::string_view relative) const {
    const std::ifstream in{path(relative), std::ios::binary};
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  mode_t mode(std::string_view relative) const {
    struct stat info {};
    require(::stat(path(relative).c_str(), &info) == 0, std::string{relative});
    return info.st_mode & 07777;
  }

 private:
  static void require(bool ok, const std::string& what) {
    if (!ok) {
      std::perror(("temp tree: " + what).c_str());
      std::abort();
    }
  }
  std::filesystem::path root_;
};

}  // namespace slurmlet::fakes
