// Options of a route's traffic rules: where its calls go by weight, what of them is written anew, and which are
// mirrored.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::proxy {

// One of the clusters that share the calls of a route (route_table.h, ClusterSplit).
struct WeightedCluster {
  std::string name;
  uint32_t weight = 0;  // 0..1000000; of a route's clusters at least one is above 0
  bool operator==(const WeightedCluster&) const = default;
};

// What is done to a block of metadata, in this order. Names are lower case; none is one that gRPC, HTTP/2 or the proxy
// itself has a meaning for.
struct FieldRewrite {
  struct Entry {
    std::string name, value;
    bool operator==(const Entry&) const = default;
  };
  std::vector<std::string> remove;
  std::vector<Entry> set;  // in the place of all of that name
  std::vector<Entry> add;  // beside those that are there
  bool empty() const { return remove.empty() && set.empty() && add.empty(); }
  bool operator==(const FieldRewrite&) const = default;
};

// What endpoints and clients see otherwise than it was sent (call/rewrite.h).
struct RewriteOptions {
  std::string authority;  // what endpoints see as :authority. Empty: the client's
  FieldRewrite request, response;
  bool of_request() const { return !authority.empty() || !request.empty(); }
  bool enabled() const { return of_request() || !response.empty(); }
  bool operator==(const RewriteOptions&) const = default;
};

// Calls of a route are made a second time, at another cluster, whose answer no client gets (call/mirror_call.h).
struct MirrorOptions {
  std::string cluster;  // empty: none
  double percent = 100;
  // The two answers are compared.
  bool compare = false;
  // Mirrored calls of the route under way at once; of more there are none.
  uint32_t calls_max = 100;
  // Request bytes of one that are there and not sent. More: it is given up.
  uint32_t bytes_max = 64 * 1024;
  // Of one, where its client's call has not less.
  std::chrono::milliseconds timeout{10000};
  bool enabled() const { return !cluster.empty(); }
  bool operator==(const MirrorOptions&) const = default;
};

}  // namespace sluice::proxy
