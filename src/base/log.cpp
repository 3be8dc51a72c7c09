#include "base/log.h"

#include <poll.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "base/plain_text.h"
#include "base/text.h"

namespace slurmlet::log {
namespace {

constexpr std::size_t kMaxBytes = 16384;

// %* in the pattern: the syslog priority that systemd-journald reads (sd-daemon(3)).
class PriorityFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const char* prefix = "<6>";
    if (message.level >= spdlog::level::err) {
      prefix = "<3>";
    } else if (message.level == spdlog::level::warn) {
      prefix = "<4>";
    } else if (message.level <= spdlog::level::debug) {
      prefix = "<7>";
    }
    out.append(prefix, prefix + 3);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return spdlog::details::make_unique<PriorityFlag>();
  }
};

// As much as stderr takes without waiting. Its flags stay as they are: others may share it.
std::size_t write_now(std::string_view text) {
  const std::size_t whole = text.size();
  while (!text.empty()) {
    ssize_t taken = ::send(STDERR_FILENO, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken < 0 && errno == ENOTSOCK) {
      // A writable pipe takes this much (pipe(7)).
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      taken = ::poll(&room, 1, 0) == 1 ? ::write(STDERR_FILENO, text.data(),
                                                 std::min<std::size_t>(text.size(), PIPE_BUF))
                                       : -1;
    }
    if (taken <= 0) {
      break;
    }
    text.remove_prefix(static_cast<std::size_t>(taken));
  }
  return whole - text.size();
}

// The log's reader may be slow or hang, and no thread waits for it: what it does not take at once
// is dropped, and counted in the next line.
class StderrSink final : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& message) override {
    std::unique_lock lock{mutex_, std::try_to_lock};
    // Longer than a tenth of a second only a file can keep another thread.
    for (int tries = 0; !lock && tries < 100; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
      (void)lock.try_lock();
    }
    if (!lock || !report_loss(message.logger_name) || !put(message)) {
      ++lost_;
    }
  }
  void flush() override {}
  void set_pattern(const std::string& /*pattern*/) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> formatter) override {
    formatter_ = std::move(formatter);
  }

 private:
  bool report_loss(spdlog::string_view_t logger) {
    const auto lost = lost_.load();
    if (lost == 0) {
      return true;
    }
    const std::string text =
        std::to_string(lost) + " log messages are missing here: the log was not read in time";
    if (!put({logger, spdlog::level::warn, text})) {
      return false;
    }
    lost_ -= lost;
    return true;
  }
  // Whether it was written, at least in part: then the rest goes first.
  bool put(const spdlog::details::log_msg& message) {
    rest_.erase(0, write_now(rest_));
    if (!rest_.empty()) {
      return false;
    }
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string_view text{line.data(), line.size()};
    const std::size_t taken = write_now(text);
    rest_ = taken == 0 ? "" : text.substr(taken);
    return taken != 0;
  }

  std::mutex mutex_;
  std::unique_ptr<spdlog::formatter> formatter_;
  std::string rest_;  // of a line that was taken in part
  std::atomic<std::uint64_t> lost_{0};
};

// As systemd.exec(5) says: the variable is inherited where the output goes elsewhere, too.
bool writes_to_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat info {};
  return stream != nullptr && ::fstat(STDERR_FILENO, &info) == 0 &&
         fmt::format("{}:{}", info.st_dev, info.st_ino) == stream;
}

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto out = std::make_shared<spdlog::logger>("slurmlet", std::make_shared<StderrSink>());
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<PriorityFlag>('*');
    formatter->set_pattern(writes_to_journal() ? "%*%v" : "%Y-%m-%dT%H:%M:%S.%f%z %l %v");
    out->set_formatter(std::move(formatter));
    return out;
  }();
  return *instance;
}

// Quoted foreign text must not split a message, nor move a terminal's cursor.
std::string one_line(const std::string& text) { return plain_text(text, kMaxBytes); }

}  // namespace

void set_level(Level level) {
  switch (level) {
    case Level::kDebug:
      return logger().set_level(spdlog::level::debug);
    case Level::kInfo:
      return logger().set_level(spdlog::level::info);
    case Level::kWarning:
      return logger().set_level(spdlog::level::warn);
    case Level::kError:
      return logger().set_level(spdlog::level::err);
  }
}
void debug(const std::string& message) { logger().debug("{}", one_line(message)); }
void info(const std::string& message) { logger().info("{}", one_line(message)); }
void warning(const std::string& message) { logger().warn("{}", one_line(message)); }
void error(const std::string& message) { logger().error("{}", one_line(message)); }

void error_lines(const std::string& message) {
  for (const auto line : split(message, '\n')) {
    if (!line.empty()) {
      error(std::string{line});
    }
  }
}

}  // namespace slurmlet::log
