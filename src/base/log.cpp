#include "base/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>

#include "base/plain_text.h"

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

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto out = std::make_shared<spdlog::logger>("slurmlet",
                                                std::make_shared<spdlog::sinks::stderr_sink_mt>());
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<PriorityFlag>('*');
    formatter->set_pattern(
        std::getenv("JOURNAL_STREAM") != nullptr ? "%*%v" : "%Y-%m-%dT%H:%M:%S.%f%z %l %v");
    out->set_formatter(std::move(formatter));
    return out;
  }();
  return *instance;
}

// A message that quotes somebody else's text must not look like two, nor move a terminal's cursor.
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

}  // namespace slurmlet::log
