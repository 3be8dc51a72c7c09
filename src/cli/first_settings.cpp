#include "cli/first_settings.h"

#include <poll.h>

#include <iterator>
#include <string>
#include <utility>

#include "base/log.h"
#include "daemon/bootstrap_loop.h"

namespace slurmlet::cli {
namespace {

// For the watchdog, and for files that another host writes.
constexpr int kLookMilliseconds = 20'000;

}  // namespace

Result<config::Settings> first_settings(const std::function<Result<config::Settings>()>& read,
                                        FileWatch::Files files, Signals& signals,
                                        status::ServiceReport& service) {
  auto settings = read();
  if (settings || settings.error().code != Code::kNotFound || !service.is_heard()) {
    return settings;
  }
  FileWatch watch{std::move(files)};  // every entry of their directories is news
  std::string said;
  while (!(settings = read())) {
    const std::string text = "waiting for configuration: " + settings.error().message;
    if (said != text) {
      log::info(text);
      said = text;
    }
    service.waiting(text);
    pollfd descriptors[] = {{signals.fd(), POLLIN, 0}, {watch.fd(), POLLIN, 0}};
    (void)::poll(descriptors, std::size(descriptors), kLookMilliseconds);
    if (daemon::must_stop(signals, service)) {
      return Error{Code::kCancelled, "stopped while waiting for configuration"};
    }
    (void)watch.changed();
  }
  return settings;
}

}  // namespace slurmlet::cli
