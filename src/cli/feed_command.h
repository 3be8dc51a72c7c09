#pragma once

// `slurmlet feed --output DIR [--interval 30s]`: the reader of a site
// (slurm/sources/feed_writer.h), run by systemd on one host. Returns the exit code: 0 after SIGTERM
// or SIGINT, 1 when the directory cannot be used, 2 for a wrong command line.

#include <string>

#include "config/settings.h"
#include "daemon/signals.h"

namespace slurmlet::cli {

struct FeedOptions {
  std::string output;    // directory
  std::string interval;  // as given; "" = 30s
};

int run_feed(const config::Settings& settings, const FeedOptions& options,
             daemon::Signals& signals);

}  // namespace slurmlet::cli
