// EtcdList: the list that the keys below a prefix make, kept up by changes. A value without I/O; what is said to it is
// untrusted. Values are parsed once, when they change.
//
// One thread at a time, not a worker: ten thousand values take a while.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "discovery/etcd/etcd_messages.h"
#include "discovery/list.h"

namespace sluice::discovery {

class EtcdList {
 public:
  // Keys; of one more the list is an error, until it is begun anew.
  static constexpr size_t kKeysMax = upstream::kEndpointsMax;
  static constexpr size_t kValueBytesMax = 4096;

  // The endpoint of a value. `name`: the key below the prefix, which the endpoint has unless the value says another.
  using ParseValue = std::function<base::Result<upstream::EndpointOptions>(std::string_view name, std::string_view)>;

  EtcdList(std::string prefix, ParseValue parse) : prefix_(std::move(prefix)), parse_(std::move(parse)) {}

  // There are no keys.
  void Begin();
  // In this order.
  void Apply(const std::vector<EtcdChange>& changes);
  // Sorted. kInvalidArgument, with the keys and what is wrong with each: one bad entry refuses the whole list.
  base::Result<List> Make() const;
  // There were more keys than it can follow: it is to be begun anew.
  bool overflown() const { return overflown_; }

 private:
  base::Result<upstream::EndpointOptions> EndpointOf(const EtcdChange& change) const;

  const std::string prefix_;
  const ParseValue parse_;
  std::map<std::string, base::Result<upstream::EndpointOptions>> entries_;  // by key
  bool overflown_ = false;
};

// The value that says `endpoint`, for the key with its name: "10.0.0.1:50051", or JSON where it says more.
std::string EtcdValueOf(const upstream::EndpointOptions& endpoint);

}  // namespace sluice::discovery
