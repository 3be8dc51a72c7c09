#include "podapi/source_budget.h"

#include <algorithm>

namespace slurmlet::podapi {
namespace {

// There is one: see know().
template <typename Accounts>
auto seen_longest_ago(Accounts& accounts, bool known) {
  auto oldest = accounts.end();
  for (auto it = accounts.begin(); it != accounts.end(); ++it) {
    if (it->second.is_known == known &&
        (oldest == accounts.end() || it->second.seen < oldest->second.seen)) {
      oldest = it;
    }
  }
  return oldest;
}

}  // namespace

SourceBudget::SourceBudget(const SourceLimits& limits)
    : limits_(limits), unknown_(limits.unknown) {}

SteadyTime SourceBudget::take(const Source& source, SteadyTime now) {
  Account& host = account(hosts_, source.host, limits_.address, now);
  if (host.is_known) {
    const SteadyTime turn = host.bucket.ready(now);
    host.bucket.take(now);
    return turn;
  }
  Account& network = account(networks_, source.network, limits_.network, now);
  const SteadyTime turn =
      std::max({host.bucket.ready(now), network.bucket.ready(now), unknown_.ready(now)});
  if (turn <= now) {
    host.bucket.take(now);
    network.bucket.take(now);
    unknown_.take(now);
    host.served = network.served = now;
  }
  return turn;
}

std::pair<SteadyTime, SteadyTime> SourceBudget::served(const Source& source) const {
  const auto in = [](const Accounts& accounts, const std::string& name) {
    const auto found = accounts.find(name);
    return found == accounts.end() ? SteadyTime{} : found->second.served;
  };
  return {in(networks_, source.network), in(hosts_, source.host)};
}

void SourceBudget::know(const Source& source, SteadyTime now) {
  Account& host = account(hosts_, source.host, limits_.address, now);
  if (host.is_known) {
    return;
  }
  host.is_known = true;
  // Half of the places stay free for the others.
  if (++known_ > limits_.max_sources / 2) {
    seen_longest_ago(hosts_, true)->second.is_known = false;
    --known_;
  }
}

bool SourceBudget::knows(const Source& source) const {
  const auto found = hosts_.find(source.host);
  return found != hosts_.end() && found->second.is_known;
}

SourceBudget::Account& SourceBudget::account(Accounts& accounts, const std::string& name,
                                             const Rate& rate, SteadyTime now) {
  const auto found = accounts.find(name);
  if (found != accounts.end()) {
    found->second.seen = now;
    return found->second;
  }
  if (accounts.size() >= limits_.max_sources) {
    accounts.erase(seen_longest_ago(accounts, false));
  }
  return accounts.emplace(name, Account{TokenBucket{rate}, now}).first->second;
}

}  // namespace slurmlet::podapi
