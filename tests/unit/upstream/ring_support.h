// What tests of rings share: lists of members by name, and a ring of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "upstream/hash_ring.h"

namespace sluice::upstream {

using Members = std::map<std::string, double>;  // name -> weight

inline constexpr auto kAll = [](uint32_t) { return true; };

inline HashRing MakeRing(const Members& members, uint32_t base, const HashRing* previous = nullptr,
                         HashRing::PointHash hash = &HashRing::Point) {
  std::vector<RingEndpoint> list;
  for (const auto& [name, weight] : members) list.push_back({name, weight});
  return HashRing::Build(list, base, previous, hash);
}

// n members of weight 1, named as addresses; `fleet` gives other names for the same n.
inline Members Named(int n, int fleet = 0) {
  Members members;
  for (int i = 0; i < n; ++i) {
    members["10." + std::to_string(fleet) + "." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ":50051"] =
        1;
  }
  return members;
}

}  // namespace sluice::upstream
