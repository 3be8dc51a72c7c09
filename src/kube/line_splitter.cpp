#include "kube/line_splitter.h"

namespace slurmlet::kube {

bool LineSplitter::feed(std::string_view bytes, std::vector<std::string>& lines) {
  while (true) {
    const auto end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (partial_.size() + piece.size() > max_line_bytes_) {
      clear();
      return false;
    }
    partial_ += piece;
    if (end == std::string_view::npos) {
      return true;
    }
    if (partial_.ends_with('\r')) {
      partial_.pop_back();
    }
    if (!partial_.empty()) {
      lines.push_back(std::move(partial_));
    }
    clear();
    bytes.remove_prefix(end + 1);
  }
}

// A fresh string: a rare large object must not hold its memory for the hours a watch lives.
void LineSplitter::clear() { partial_ = std::string(); }

}  // namespace slurmlet::kube
