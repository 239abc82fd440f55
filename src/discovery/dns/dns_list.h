// DnsList: the list that the records of a name come to. Values only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/list.h"
#include "discovery/options.h"

namespace sluice::discovery {

// An address with the port, priority and weight that its endpoint gets.
struct DnsHost {
  std::string host;
  uint16_t port = 0, priority = 0, weight = 0;
  bool operator==(const DnsHost&) const = default;
};

// Endpoints are named by address, so that all proxies have the same ring. Of SRV: priorities by their order; weights
// relative to the largest one of a priority, because servers that know n equal endpoints give each 1/n. Sorted, each
// once, with its highest priority. Port 0 is left out.
// With mode one: at most one endpoint, named as the source is, of the highest priority; it stays at `current` (an
// address with port) as long as that is found. Of several it is drawn by `seed`, with the probability of its weight
// (RFC 2782): the same one each time as long as that is found, and another one where the seed is another.
List ListOf(const DnsOptions& options, const std::vector<DnsHost>& hosts, std::string_view current, uint64_t seed);

}  // namespace sluice::discovery
