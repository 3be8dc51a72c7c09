#pragma once

// What is done for few at a time: each has its turn. Pure.

#include <cstddef>
#include <string>

namespace slurmlet::op {

// Visits all entries of a map, first those behind the key `last`, which had the last turn.
template <class Map, class Visit>
void visit_in_turn(Map& map, const std::string& last, const Visit& visit) {
  auto at = map.upper_bound(last);
  for (std::size_t left = map.size(); left > 0; --left, ++at) {
    if (at == map.end()) {
      at = map.begin();
    }
    visit(*at);
  }
}

}  // namespace slurmlet::op
