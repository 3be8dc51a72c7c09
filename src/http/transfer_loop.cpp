#include "http/transfer_loop.h"

#include <poll.h>

#include <algorithm>
#include <limits>

namespace slurmlet::http {
namespace {

// Connections kept beyond those in use: one for the next call, one for the next watch.
constexpr std::size_t kSpareConnections = 2;

// poll(2)'s time-out, rounded up so that the last fraction of a millisecond is not spun away.
int poll_timeout(SteadyTime until) {
  constexpr int kLongest = std::numeric_limits<int>::max();
  const SteadyTime now = std::chrono::steady_clock::now();
  if (until <= now) {
    return 0;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now);
  return static_cast<int>(std::min<std::int64_t>(left.count(), kLongest));
}

}  // namespace

void TransferLoop::add(Transfer& transfer) {
  transfers_.push_back(&transfer);
  if (transfer.ended()) {
    return;
  }
  limit_connections();
  if (curl_multi_add_handle(multi_.get(), transfer.easy()) != CURLM_OK) {
    transfer.finish(CURLE_FAILED_INIT);
  }
}

void TransferLoop::remove(Transfer& transfer) {
  const auto found = std::find(transfers_.begin(), transfers_.end(), &transfer);
  if (found != transfers_.end()) {
    transfers_.erase(found);
    curl_multi_remove_handle(multi_.get(), transfer.easy());
    limit_connections();
  }
}

void TransferLoop::end_streams(const Owner& owner) {
  for (Transfer* transfer : transfers_) {
    if (&transfer->owner() == &owner && !transfer->ended() &&
        transfer->kind() == Transfer::Kind::kStreamed) {
      curl_multi_remove_handle(multi_.get(), transfer->easy());
      transfer->finish(CURLE_OK);
    }
  }
}

// libcurl's limit covers the connections in use as well, and holds for each pool by itself: with
// siblings a pool may keep as many more as the others have in use.
void TransferLoop::limit_connections() {
  curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS,
                    static_cast<long>(transfers_.size() + kSpareConnections));
}

void TransferLoop::advance() {
  int running = 0;
  curl_multi_perform(multi_.get(), &running);
  harvest();
  const SteadyTime now = std::chrono::steady_clock::now();
  for (Transfer* transfer : transfers_) {
    if (now >= transfer->deadline()) {
      // Out of the multi handle at once; its owner calls remove() later, which is then harmless.
      curl_multi_remove_handle(multi_.get(), transfer->easy());
      transfer->expire();
    }
  }
}

void TransferLoop::harvest() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
    if (message->msg != CURLMSG_DONE) {
      continue;
    }
    const CURLcode code = message->data.result;  // gone with the handle's removal
    CURL* easy = message->easy_handle;
    void* self = nullptr;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &self);
    static_cast<Transfer*>(self)->finish(code);
    curl_multi_remove_handle(multi_.get(), easy);
  }
}

std::vector<int> TransferLoop::poll(SteadyTime until, const std::vector<int>& fds) {
  for (const Transfer* transfer : transfers_) {
    until = std::min(until, transfer->deadline());
  }
  std::vector<curl_waitfd> extra;
  extra.reserve(fds.size());
  for (const int fd : fds) {
    extra.push_back({fd, CURL_WAIT_POLLIN, 0});
  }
  // libcurl shortens the time-out to its own next timer.
  curl_multi_poll(multi_.get(), extra.data(), static_cast<unsigned>(extra.size()),
                  poll_timeout(until), nullptr);
  // libcurl wakes for a hang-up (of a pipe whose writer has gone) but does not report it, hence a
  // second look instead of its `revents`.
  return readable(fds);
}

std::vector<int> TransferLoop::readable(const std::vector<int>& fds) {
  std::vector<int> ready;
  if (fds.empty()) {
    return ready;
  }
  std::vector<pollfd> entries;
  entries.reserve(fds.size());
  for (const int fd : fds) {
    entries.push_back({fd, POLLIN, 0});
  }
  ::poll(entries.data(), entries.size(), 0);
  for (const pollfd& entry : entries) {
    if (entry.revents != 0) {
      ready.push_back(entry.fd);
    }
  }
  return ready;
}

bool TransferLoop::take_arrivals() {
  bool arrived = false;
  for (Transfer* transfer : transfers_) {
    arrived = transfer->has_arrivals() || arrived;
    transfer->note_reported();
  }
  return arrived;
}

void TransferLoop::wake() { curl_multi_wakeup(multi_.get()); }

}  // namespace slurmlet::http
