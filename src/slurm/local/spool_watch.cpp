#include "slurm/local/spool_watch.h"

#include "slurm/local/local_jobs.h"

namespace slurmlet::slurm {

SpoolWatch::SpoolWatch(std::shared_ptr<Inotify> inotify, std::string directory, Duration rescan,
                       Duration patience)
    : inotify_(std::move(inotify)),
      directory_(std::move(directory)),
      rescan_(rescan),
      patience_(patience) {}

void SpoolWatch::step(Now now) {
  const bool is_due = now.steady >= check_at_ || opening_.busy();
  if (watch_ || directory_.empty() || !is_due) {
    return;
  }
  const bool begun = opening_.begin(
      [inotify = inotify_, directory = directory_] {
        return inotify->add(directory, IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM |
                                           IN_DELETE_SELF | IN_MOVE_SELF);
      },
      now.steady);
  check_at_ = next_aligned(now, rescan_);
  if (const auto watch = opening_.take(begun ? patience_ : Duration::zero())) {
    watch_ = *watch;
    has_changed_ = has_changed_ || watch_.has_value();
  }
}

bool SpoolWatch::take(const Inotify::Event& event) {
  if (event.watch != watch_) {
    return false;
  }
  has_changed_ = has_changed_ || is_job_entry(event.name) || event.name.empty();
  if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED)) != 0) {
    inotify_->remove(*watch_);
    watch_.reset();
  }
  return true;
}

}  // namespace slurmlet::slurm
