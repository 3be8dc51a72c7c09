#pragma once

// Moves all transfers of a client and its siblings on and does their waiting, in a single poll(2)
// over libcurl's and the caller's descriptors. Wakes for a reason only: data, a timer of libcurl's,
// a deadline or wake(). Internal to the component; one thread, except wake().

#include <vector>

#include "base/clock.h"
#include "http/curl_handle.h"
#include "http/transfer.h"

namespace slurmlet::http {

class TransferLoop {
 public:
  // False when memory was short; nothing else may be called then.
  explicit operator bool() const { return multi_ != nullptr; }

  // One that has ended already is carried for its news only. remove(), which its destructor calls,
  // closes the connection of one that has not.
  void add(Transfer& transfer);
  void remove(Transfer& transfer);

  // Closes the connections of the owner's streams, which end as if the server had ended them in
  // order.
  void end_streams(const Owner& owner);

  // Does what can be done without waiting, and ends what is past its deadline.
  void advance();

  // Whether a streamed transfer has something new. Each arrival is reported once.
  bool take_arrivals();

  // Waits until there is something for advance() to do, a descriptor of `fds` is readable, wake()
  // was called or `until` has come. Returns readable(fds).
  std::vector<int> poll(SteadyTime until, const std::vector<int>& fds);

  // Those of `fds` that are readable (or in error) now.
  static std::vector<int> readable(const std::vector<int>& fds);

  // Ends the poll() under way or the next one. Thread-safe.
  void wake();

 private:
  void harvest();
  void limit_connections();

  std::vector<Transfer*> transfers_;
  MultiHandle multi_{curl_multi_init()};
};

}  // namespace slurmlet::http
