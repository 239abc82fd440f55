#include "discovery/dns/dns_list.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/hash.h"

namespace sluice::discovery {

namespace {

constexpr double kWeightMin = 0.01;  // of an endpoint: upstream/option_table.h

bool Better(const upstream::EndpointOptions& a, const upstream::EndpointOptions& b) {
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.weight != b.weight) return a.weight > b.weight;
  return a.name < b.name;
}

// Weighted rendezvous: of any set of endpoints that with the least of these has been drawn with the probability of its
// weight, and another endpoint in the set changes nothing unless it is drawn itself.
double Draw(const upstream::EndpointOptions& endpoint, uint64_t seed) {
  const double unit = (static_cast<double>(base::Hash64(endpoint.name, seed) >> 11) + 0.5) * 0x1.0p-53;  // in (0, 1)
  return -std::log(unit) / endpoint.weight;
}

}  // namespace

List ListOf(const DnsOptions& options, const std::vector<DnsHost>& hosts, std::string_view current, uint64_t seed) {
  std::map<uint16_t, uint16_t> heaviest;  // by priority
  for (const DnsHost& host : hosts) {
    uint16_t& weight = heaviest[host.priority];
    weight = std::max(weight, host.weight);
  }
  std::map<uint16_t, uint32_t> ranks;
  for (const auto& each : heaviest)
    ranks[each.first] = std::min(static_cast<uint32_t>(ranks.size()), upstream::kPrioritiesMax - 1);
  List list;
  for (const DnsHost& host : hosts) {
    const bool v6 = host.host.find(':') != std::string::npos;
    auto address = net::Address::Parse((v6 ? "[" + host.host + "]:" : host.host + ":") + std::to_string(host.port));
    if (!address.ok() || host.port == 0) continue;
    upstream::EndpointOptions endpoint;
    endpoint.name = address->ToString();
    endpoint.address = std::move(*address);
    // RFC 2782: where all weights are 0, there is nothing to choose by.
    if (const double most = heaviest[host.priority]; most > 0)
      endpoint.weight = std::max(kWeightMin, host.weight / most);
    endpoint.priority = ranks[host.priority];
    list.push_back(std::move(endpoint));
  }
  std::sort(list.begin(), list.end(),
            [](const auto& a, const auto& b) { return a.name != b.name ? a.name < b.name : Better(a, b); });
  list.erase(std::unique(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.name == b.name; }),
             list.end());
  if (options.mode == DnsMode::kAll || list.empty()) return list;
  std::erase_if(list, [first = std::min_element(list.begin(), list.end(), &Better)->priority](const auto& e) {
    return e.priority != first;
  });
  auto chosen = std::find_if(list.begin(), list.end(), [&](const auto& e) { return e.name == current; });
  if (chosen == list.end()) {
    chosen = std::min_element(list.begin(), list.end(),
                              [seed](const auto& a, const auto& b) { return Draw(a, seed) < Draw(b, seed); });
  }
  upstream::EndpointOptions one = *chosen;
  one.name = options.NamePort();
  one.weight = 1;
  one.priority = 0;
  return {std::move(one)};
}

}  // namespace sluice::discovery
