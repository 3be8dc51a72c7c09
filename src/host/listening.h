#pragma once

// Finds the process that listens on a local TCP port, from /proc/net/tcp{,6} (proc_net(5)) and
// processes' descriptors, without binding or connecting. Only root sees other users' processes.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slurmlet::host {

struct ListeningSocket {
  int port = 0;
  uid_t uid = 0;  // of its creator
  std::uint64_t inode = 0;
  bool on_loopback = false;  // bound to 127.0.0.1 or to all addresses
  bool operator==(const ListeningSocket&) const = default;
};

// The listening sockets in one of the two files. Invalid lines are skipped. Pure.
std::vector<ListeningSocket> listening_sockets(std::string_view text);

enum class Reach : std::uint8_t { kAnyAddress, kLoopback };

// The socket that listens on the port at 127.0.0.1, or at any address; IPv4 first.
std::optional<ListeningSocket> listening_socket(const std::string& proc_root, int port,
                                                Reach reach);

struct PortOwner {
  uid_t uid = 0;
  int pid = 0;          // 0 = not visible
  std::string program;  // "kubelet"
};
std::optional<PortOwner> who_listens(const std::string& proc_root, int port, Reach reach);
// "nc (pid 42, uid 1000)"
std::string to_text(const PortOwner& owner);

}  // namespace slurmlet::host
