#include "http/known_addresses.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/side_call.h"

namespace slurmlet::http {
namespace {

std::vector<std::string> ask_resolver(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) {
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner{found, &::freeaddrinfo};
  std::vector<std::string> out;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0) {
      out.emplace_back(text.data());
    }
  }
  return out;
}

}  // namespace

struct KnownAddresses::State {
  struct Name {
    std::vector<std::string> addresses;
    std::optional<SteadyTime> looked_up;
    bool under_way = false;
  };
  void answered(const std::string& name, std::vector<std::string> addresses) {
    const std::lock_guard lock{mutex};
    Name& known = names[name];
    known.under_way = false;
    if (!addresses.empty()) {
      known.addresses = std::move(addresses);
    }
  }

  Resolve resolve;
  std::mutex mutex;
  std::map<std::string, Name> names;
};

KnownAddresses::KnownAddresses(Resolve resolve) : state_(std::make_shared<State>()) {
  state_->resolve = std::move(resolve);
}

std::string KnownAddresses::of(const std::string& name) const {
  const std::lock_guard lock{state_->mutex};
  std::string out;
  if (const auto known = state_->names.find(name); known != state_->names.end()) {
    for (const std::string& address : known->second.addresses) {
      const bool ipv6 = address.find(':') != std::string::npos;
      out += (out.empty() ? "" : ",") + (ipv6 ? "[" + address + "]" : address);
    }
  }
  return out;
}

void KnownAddresses::worked(const std::string& name, const std::string& address) {
  const std::lock_guard lock{state_->mutex};
  auto& addresses = state_->names[name].addresses;
  std::erase(addresses, address);
  addresses.insert(addresses.begin(), address);
}

void KnownAddresses::look_up(const std::string& name, SteadyTime now) {
  {
    const std::lock_guard lock{state_->mutex};
    auto& known = state_->names[name];
    if (known.under_way || (known.looked_up && now - *known.looked_up < kAgain)) {
      return;
    }
    known.under_way = true;
    known.looked_up = now;
  }
  const bool begun = run_aside(std::make_shared<SideWork>(), [state = state_, name] {
    state->answered(name, state->resolve(name));
  });
  if (!begun) {
    state_->answered(name, {});  // too many threads: next time
  }
}

KnownAddresses& known_addresses() {
  // Never destroyed: a look-up may be under way when the process ends.
  static auto& instance = *new KnownAddresses{ask_resolver};
  return instance;
}

}  // namespace slurmlet::http
