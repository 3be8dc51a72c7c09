#pragma once

// Which process listens on a TCP port of this machine, by /proc/net/tcp{,6} (proc_net(5)) and the
// sockets among the descriptors of processes. Nothing is bound or connected. Other users' processes
// are named to root only.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slurmlet::host {

struct ListeningSocket {
  int port = 0;
  uid_t uid = 0;  // of whoever made it
  std::uint64_t inode = 0;
  bool on_loopback = false;  // 127.0.0.1 can be reached by it: bound to that address, or to all
  bool operator==(const ListeningSocket&) const = default;
};

// The listening sockets of one of the two files. Pure; what cannot be understood is left out.
std::vector<ListeningSocket> listening_sockets(std::string_view text);

enum class Reach : std::uint8_t { kAnyAddress, kLoopback };

// The one of the port that takes connections to 127.0.0.1, or to any address; over IPv4 first.
// Nothing when nobody listens.
std::optional<ListeningSocket> listening_socket(const std::string& proc_root, int port,
                                                Reach reach);

struct PortOwner {
  uid_t uid = 0;
  int pid = 0;          // 0 = not to be seen
  std::string program;  // "kubelet"
};
std::optional<PortOwner> who_listens(const std::string& proc_root, int port, Reach reach);
// "nc (pid 42, uid 1000)"
std::string to_words(const PortOwner& owner);

}  // namespace slurmlet::host
