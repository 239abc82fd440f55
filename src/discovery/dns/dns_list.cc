#include "discovery/dns/dns_list.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace sluice::discovery {

namespace {

constexpr double kWeightMin = 0.01;  // of an endpoint: upstream/option_table.h

bool Better(const upstream::EndpointOptions& a, const upstream::EndpointOptions& b) {
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.weight != b.weight) return a.weight > b.weight;
  return a.name < b.name;
}

}  // namespace

List ListOf(const DnsOptions& options, const std::vector<DnsHost>& hosts, std::string_view current) {
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
  const auto best = std::min_element(list.begin(), list.end(), &Better);
  const auto kept = std::find_if(list.begin(), list.end(),
                                 [&](const auto& e) { return e.name == current && e.priority == best->priority; });
  upstream::EndpointOptions one = kept == list.end() ? *best : *kept;
  one.name = options.NamePort();
  one.weight = 1;
  one.priority = 0;
  return {std::move(one)};
}

}  // namespace sluice::discovery
