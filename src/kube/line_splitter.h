#pragma once

// Cuts a stream of bytes into lines: a watch sends one JSON object a line. Not thread-safe.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace slurmlet::kube {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line_bytes) : max_line_bytes_(max_line_bytes) {}

  // Appends the lines that are complete now, without their ends and without empty ones. False when
  // a line grew over the limit: the rest of the stream cannot be trusted then.
  [[nodiscard]] bool feed(std::string_view bytes, std::vector<std::string>& lines);
  void clear();

 private:
  std::size_t max_line_bytes_;
  std::string partial_;
};

}  // namespace slurmlet::kube
