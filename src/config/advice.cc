// Advise: what is legal in a configuration as a whole and has no effect, or another one than was meant.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "net/own_listener.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::RetryOptions;
using proxy::RouteOptions;
using Methods = RetryOptions::Methods;

constexpr std::string_view kNothing = "has no effect: ";

class Adviser {
 public:
  Adviser(Section& root, const Config& config) : root_(root), config_(config) {}

  void Run() {
    for (size_t i = 0; i < config_.clusters.size(); ++i) CheckEndpoints(i);
    const Node* routes = ValueOf(root_.node(), "routes");
    for (size_t i = 0; routes != nullptr && i < std::min(routes->items.size(), config_.routes.size()); ++i) {
      CheckRepeats(*routes->items[i], Cat("routes[", i, "]"), config_.routes[i]);
    }
    CheckHashSeed(routes);
    CheckCache();
  }

 private:
  // At the value of `key` in `map`, or at the map if it has none.
  void Warn(const Node& map, const std::string& path, std::string_view key, std::string message) {
    const Node* value = ValueOf(map, key);
    root_.reader().Warn(value != nullptr ? *value : map, Cat(path, ".", key), std::move(message));
  }

  const upstream::ClusterOptions* Cluster(std::string_view name) const {
    const auto& all = config_.clusters;
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& cluster) { return cluster.name == name; });
    return it == all.end() ? nullptr : &*it;
  }

  static bool TakesFrom(const RouteOptions& route, const proxy::ListenerOptions& listener) {
    const auto& names = route.listeners;
    return names.empty() || std::find(names.begin(), names.end(), listener.name) != names.end();
  }

  static bool LeadsTo(const RouteOptions& route, std::string_view cluster) {
    return route.cluster == cluster || route.failover == cluster || route.mirror.cluster == cluster ||
           std::any_of(route.clusters.begin(), route.clusters.end(),
                       [&](const proxy::WeightedCluster& each) { return each.name == cluster; });
  }

  void CheckEndpoints(size_t index) {
    const upstream::ClusterOptions& cluster = config_.clusters[index];
    const Node& node = *ValueOf(root_.node(), "clusters")->items[index];
    const std::string path = Cat("clusters[", index, "]");
    if (cluster.endpoints.empty() && !config_.discovery.contains(cluster.name) && config_.state_file.empty()) {
      Warn(node, path, "endpoints",
           "is empty and the cluster has no discovery: its calls fail until sluicectl gives it a list, which no "
           "state_file keeps over a restart");
    }
    const Node* list = ValueOf(node, "endpoints");
    for (size_t i = 0; list != nullptr && i < std::min(list->items.size(), cluster.endpoints.size()); ++i) {
      CheckOwnListener(*list->items[i], Cat(path, ".endpoints[", i, "]"), cluster, cluster.endpoints[i].address);
    }
  }

  // A call that comes back to the process that sent it goes round until its hops are used up.
  void CheckOwnListener(const Node& at, const std::string& path, const upstream::ClusterOptions& cluster,
                        const net::Address& endpoint) {
    for (const proxy::ListenerOptions& listener : config_.listeners) {
      if (!net::LeadsToListener(endpoint, listener.address)) continue;
      const auto route = std::find_if(config_.routes.begin(), config_.routes.end(), [&](const RouteOptions& each) {
        return TakesFrom(each, listener) && LeadsTo(each, cluster.name);
      });
      if (route == config_.routes.end()) continue;  // a way through two listeners of one process
      root_.reader().Fail(
          at, path,
          Cat(endpoint.ToString(), " is this process's own listener ", Shown(listener.name), ", whose calls route ",
              Shown(route->name),
              " sends here: a call would go round until it is refused; allowed: the address of a server"));
      return;
    }
  }

  void CheckRepeats(const Node& node, const std::string& path, const RouteOptions& route) {
    const std::string why = WhyNoMethod(route.retry);
    if (why.empty()) return;
    if (route.retry.per_try_timeout.count() > 0) {
      Warn(*ValueOf(node, "retry"), path + ".retry", "per_try_timeout", Cat(kNothing, why));
    }
    if (route.retry.on != RetryOptions().on) Warn(*ValueOf(node, "retry"), path + ".retry", "on", Cat(kNothing, why));
    if (route.hedge.max > 0) Warn(node, path, "hedge", Cat(kNothing, why));
  }

  // Why no call is repeated that a backend may have worked on; empty: some are.
  static std::string WhyNoMethod(const RetryOptions& retry) {
    if (retry.attempts_max == 1) return "retry.attempts is 1";
    if (retry.methods == Methods::kAll || !retry.paths.empty()) return "";
    constexpr std::string_view kAllowed = "; allowed: retry.methods: all, or a list of methods that may be";
    switch (retry.methods) {
      case Methods::kNone:
        return Cat("retry.methods is none, so that no call may be repeated", kAllowed);
      case Methods::kListed:
        return Cat("retry.methods is an empty list, so that no call may be repeated", kAllowed);
      default:
        return Cat("no method that the route takes is declared to be idempotent in a descriptor_set", kAllowed);
    }
  }

  // A client that chooses its keys, and can compute the ring, aims all its calls at one endpoint.
  void CheckHashSeed(const Node* routes) {
    if (!config_.hash_seed.empty() || routes == nullptr) return;
    size_t more = 0;
    const RouteOptions* first = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < std::min(routes->items.size(), config_.routes.size()); ++i) {
      if (!ByClient(config_.routes[i])) continue;
      if (first == nullptr) {
        first = &config_.routes[i];
        at = i;
      } else {
        ++more;
      }
    }
    if (first == nullptr) return;
    Warn(*routes->items[at], Cat("routes[", at, "]"), "hash_by",
         Cat("clients choose the key, and without hash_seed they can find keys that are all of one endpoint",
             more == 0 ? "" : Cat(" (", more, more == 1 ? " more route" : " more routes", " likewise)"),
             "; allowed: a secret text in hash_seed, the same for all proxies of the service"));
  }

  // Of a client of another host: those on this one are the operator's own.
  bool ByClient(const RouteOptions& route) const {
    const auto kind = route.hash_by.kind;
    if (kind != proxy::HashBy::Kind::kMetadata && kind != proxy::HashBy::Kind::kField) return false;
    const bool reached =
        std::any_of(config_.listeners.begin(), config_.listeners.end(), [&](const proxy::ListenerOptions& listener) {
          return TakesFrom(route, listener) && listener.address.kind() == net::Address::Kind::kIp &&
                 !listener.address.is_loopback();
        });
    return reached && std::any_of(config_.clusters.begin(), config_.clusters.end(), [&](const auto& cluster) {
             return LeadsTo(route, cluster.name) && cluster.policy == upstream::Policy::kRingHash &&
                    cluster.ring == upstream::Ring::kSluice;
           });
  }

  void CheckCache() {
    const size_t stored_max = proxy::CacheEntryBytesMax(config_.cache);
    const Node* cache = ValueOf(root_.node(), "cache");
    if (cache == nullptr || config_.cache.entry_bytes_max <= stored_max) return;
    Warn(*cache, "cache", "entry_max",
         Cat(FormatBytes(config_.cache.entry_bytes_max), ": of a capacity of ",
             FormatBytes(config_.cache.capacity_bytes), " no entry takes more than ", FormatBytes(stored_max),
             ", with its key; larger responses are passed on and never stored"));
  }

  Section& root_;
  const Config& config_;
};

}  // namespace

void Advise(Section& root, const Config& config) { Adviser(root, config).Run(); }

}  // namespace sluice::config
