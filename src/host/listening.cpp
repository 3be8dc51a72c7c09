#include "host/listening.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/text.h"

namespace slurmlet::host {
namespace {

constexpr std::string_view kListen = "0A";  // TCP_LISTEN
constexpr std::size_t kAddress = 1;
constexpr std::size_t kState = 3;
constexpr std::size_t kUid = 7;
constexpr std::size_t kInode = 9;

// All addresses, 127.0.0.1, or IPv4-mapped ones, in either byte order, since the file has the
// machine's.
bool reaches_loopback(std::string_view address) {
  const bool is_any = address.find_first_not_of('0') == std::string_view::npos;
  return is_any || address == "0100007F" || address == "7F000001" ||
         address == "0000000000000000FFFF00000100007F" ||
         address == "00000000000000000000FFFF7F000001";
}

bool is_reached(const ListeningSocket& socket, Reach reach) {
  return reach == Reach::kAnyAddress || socket.on_loopback;
}

std::optional<ListeningSocket> read_line(std::string_view line) {
  const auto fields = words(line);
  if (fields.size() <= kInode || fields[kState] != kListen) {
    return std::nullopt;
  }
  const auto colon = fields[kAddress].rfind(':');
  if (colon == std::string_view::npos) {
    return std::nullopt;
  }
  const auto port = parse_int<int>(fields[kAddress].substr(colon + 1), 16);
  const auto uid = parse_int<uid_t>(fields[kUid]);
  const auto inode = parse_int<std::uint64_t>(fields[kInode]);
  if (!port || !uid || !inode) {
    return std::nullopt;
  }
  ListeningSocket out;
  out.port = *port;
  out.uid = *uid;
  out.inode = *inode;
  out.on_loopback = reaches_loopback(fields[kAddress].substr(0, colon));
  return out;
}

bool holds_socket(const std::filesystem::path& process, const std::string& socket) {
  std::error_code error;
  for (std::filesystem::directory_iterator at{process / "fd", error}, end; !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(at->path(), ignored) == socket) {
      return true;
    }
  }
  return false;
}

PortOwner owner_of(const std::string& proc_root, const ListeningSocket& listener) {
  const std::string socket = fmt::format("socket:[{}]", listener.inode);
  const auto names = list_directory(proc_root);
  for (const auto& name : names ? *names : std::vector<std::string>{}) {
    const auto pid = parse_int<int>(name);
    const std::filesystem::path process = std::filesystem::path{proc_root} / name;
    if (pid && holds_socket(process, socket)) {
      return {listener.uid, *pid, read_trimmed(process / "comm")};
    }
  }
  return {listener.uid, 0, ""};
}

}  // namespace

std::vector<ListeningSocket> listening_sockets(std::string_view text) {
  std::vector<ListeningSocket> out;
  for (const auto line : split(text, '\n')) {
    if (const auto socket = read_line(line)) {
      out.push_back(*socket);
    }
  }
  return out;
}

std::optional<ListeningSocket> listening_socket(const std::string& proc_root, int port,
                                                Reach reach) {
  constexpr std::size_t kLongest = std::size_t{64} << 20;  // for many connections
  for (const char* file : {"net/tcp", "net/tcp6"}) {
    const auto text = read_file(std::filesystem::path{proc_root} / file, kLongest);
    for (const auto& socket : listening_sockets(text ? *text : "")) {
      if (socket.port == port && is_reached(socket, reach)) {
        return socket;
      }
    }
  }
  return std::nullopt;
}

std::optional<PortOwner> who_listens(const std::string& proc_root, int port, Reach reach) {
  const auto socket = listening_socket(proc_root, port, reach);
  return socket ? std::optional{owner_of(proc_root, *socket)} : std::nullopt;
}

std::string to_text(const PortOwner& owner) {
  if (owner.pid == 0) {
    return fmt::format("a process of uid {} (run as root to see it)", owner.uid);
  }
  return fmt::format("{} (pid {}, uid {})", owner.program, owner.pid, owner.uid);
}

}  // namespace slurmlet::host
