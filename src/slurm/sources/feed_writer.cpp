#include "slurm/sources/feed_writer.h"

#include <algorithm>
#include <utility>

#include "slurm/local/slurmd_watch.h"

namespace slurmlet::slurm {
namespace {

WallTime whole_seconds(WallTime time) {
  return std::chrono::time_point_cast<std::chrono::seconds>(time);
}

}  // namespace

FeedWriter::FeedWriter(FeedWriterSettings settings, FeedDirectory directory,
                       std::unique_ptr<CommandRunner> runner, Random random)
    : settings_(std::move(settings)),
      directory_(std::move(directory)),
      runner_(std::move(runner)),
      backoff_(std::min(settings_.interval, settings_.max_backoff),
               std::max(settings_.interval, settings_.max_backoff), std::move(random)) {
  header_.cluster = settings_.cluster;
  header_.reader = settings_.reader;
  header_.slurm_version = settings_.slurm_version;
  header_.interval = settings_.interval;
  if (const auto text = directory_.read_header()) {
    const auto old = parse_feed_header(*text);
    if (old && old->cluster == header_.cluster) {
      header_.dumped_at = old->dumped_at;
      header_.nodes = old->nodes;
    }
  }
}

void FeedWriter::start(Now now) {
  asked_ = now.wall;
  if (auto started = runner_->start(feed_question(settings_.client), now.steady); !started) {
    fail(now, started.error().message);
  }
}

// The records first: a header never tells of a dump whose records are not there yet.
Status FeedWriter::publish(Now now, const std::string& dump) {
  const auto records = split_dump(dump);
  if (!records) {
    return records.error();
  }
  auto changes = directory_.replace(*records);
  if (!changes) {
    return changes.error();
  }
  FeedHeader header = header_;
  header.dumped_at = whole_seconds(asked_);
  header.nodes = static_cast<std::int64_t>(records->size());
  header.failure.clear();
  if (auto written = directory_.write_header(to_text(header)); !written) {
    return written;
  }
  header_ = std::move(header);
  ++status_.dumps;
  status_.nodes = records->size();
  status_.changes = *changes;
  status_.failure.clear();
  backoff_.reset();
  due_ = next_aligned(now, settings_.interval);
  return {};
}

void FeedWriter::finish(Now now, const CommandOutput& output) {
  if (const auto failure = feed_question_failure(output)) {
    fail(now, *failure);
  } else if (const auto published = publish(now, output.out); !published) {
    fail(now, published.error().message);
  }
}

void FeedWriter::fail(Now now, const std::string& why) {
  ++status_.failures;
  status_.failure = why;
  due_ = now.steady + backoff_.next();
  if (header_.failure != why) {
    FeedHeader header = header_;
    header.failure = why;
    if (directory_.write_header(to_text(header))) {
      header_ = std::move(header);
    }
  }
}

SteadyTime FeedWriter::step(Now now) {
  CommandOutput output;
  if (runner_->running() && runner_->poll(now.steady, output)) {
    finish(now, output);
  }
  if (!runner_->running() && now.steady >= due_) {
    start(now);
  }
  return runner_->running() ? runner_->deadline() : due_;
}

}  // namespace slurmlet::slurm
