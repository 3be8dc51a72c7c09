#include "slurm/local/host_names.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <memory>

#include "base/detached_task.h"

namespace slurmlet::slurm {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// The canonical name stands with the first address only.
std::vector<std::string> names_of(const addrinfo* address) {
  std::vector<std::string> names;
  for (; address != nullptr; address = address->ai_next) {
    std::array<char, NI_MAXHOST> name{};
    if (address->ai_canonname != nullptr) {
      names.emplace_back(address->ai_canonname);
    } else if (::getnameinfo(address->ai_addr, address->ai_addrlen, name.data(), name.size(),
                             nullptr, 0, NI_NAMEREQD) == 0) {
      names.emplace_back(name.data());
    }
  }
  return names;
}

void add_aliases(const std::string& hostname, std::vector<std::string>& names) {
  std::array<char, 4096> buffer{};
  hostent entry{};
  hostent* found = nullptr;
  int problem = 0;
  if (::gethostbyname_r(hostname.c_str(), &entry, buffer.data(), buffer.size(), &found, &problem) !=
          0 ||
      found == nullptr) {
    return;
  }
  for (char** alias = found->h_aliases; *alias != nullptr; ++alias) {
    names.emplace_back(*alias);
  }
}

}  // namespace

Result<std::vector<std::string>> other_host_names(const std::string& hostname) {
  touches_file("the name server, queried for " + hostname + ",");
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME | AI_ADDRCONFIG | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  const int problem = ::getaddrinfo(hostname.c_str(), nullptr, &hints, &all);
  if (problem == EAI_AGAIN) {
    return Error{Code::kUnavailable, fmt::format("the name {} cannot be resolved: {}", hostname,
                                                 gai_strerror(problem))};
  }
  std::vector<std::string> names;
  if (problem == 0) {
    const Addresses addresses{all, &::freeaddrinfo};
    names = names_of(addresses.get());
    add_aliases(hostname, names);
  }
  names.emplace_back("localhost");
  return names;
}

}  // namespace slurmlet::slurm
