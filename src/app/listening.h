#pragma once

// Which process listens on a TCP port of this machine, by /proc/net/tcp{,6} (proc_net(5)) and the
// sockets among the descriptors of processes. Nothing is bound or connected. Other users' processes
// are named to root only.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slurmlet::app {

struct ListeningSocket {
  int port = 0;
  std::uint64_t inode = 0;
  bool on_loopback = false;  // 127.0.0.1 can be reached by it: bound to it, or to all addresses
  bool operator==(const ListeningSocket&) const = default;
};

// The listening sockets of one of the two files. Pure; what cannot be understood is left out.
std::vector<ListeningSocket> listening_sockets(std::string_view text);

struct PortOwner {
  int pid = 0;          // 0 = not to be seen
  std::string program;  // "kubelet"
};
// Nothing when nobody listens. `loopback_only`: only sockets that take connections to 127.0.0.1.
std::optional<PortOwner> who_listens(const std::string& proc_root, int port, bool loopback_only);

}  // namespace slurmlet::app
