// What one process of the daemon tells the next, as records (docs/handover.md): lists and limits in force before the
// next one builds anything; health, levels of rates, debts of clients, counts and stored responses at the last moment.
//
// What is read is input: records that make no sense here are left out, or what they say is put right; only what is no
// record at all is an error.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "handover/record_file.h"
#include "metrics/registry.h"
#include "proxy/response_cache/cache.h"
#include "server/clusters.h"
#include "server/limit_set.h"
#include "sluice/handover/v1/handover.pb.h"

namespace sluice::server {

// The first file. Any thread but a worker's, as all below. kIo.
base::Result<handover::Descriptor> WriteLists(const InheritedLists& lists, const LimitTable& limits);
struct HandedLists {
  InheritedLists lists;
  std::vector<LimitTable::Named> limits;  // without limiters
};
// kInvalidArgument, kIo.
base::Result<HandedLists> ReadLists(const handover::Descriptor& file);

// How far the buckets of the rates that are in force are from full.
struct HandedLevels {
  std::map<std::string, limits::RateLimiter::Level> rates;
  std::map<std::string, limits::KeyedRateLimiter::Debts> clients;
};

// What the second file is made of, and what it is put into.
struct HandedState {
  Clusters& clusters;
  const LimitTable limits;
  metrics::Registry& registry;
  proxy::ResponseCache* cache;  // null: none
};
// `counts`: of the registry. kIo.
base::Result<handover::Descriptor> WriteState(const HandedState& state, const HandedLevels& levels,
                                              const std::vector<metrics::Counted>& counts, base::TimePoint now);
// As far as its limits and endpoints are known here. kInvalidArgument, kIo.
base::Status ReadState(const handover::Descriptor& file, const HandedState& state, base::TimePoint now);

// What each process has of the limits, in their order. kIo; kInvalidArgument.
base::Result<handover::Descriptor> WriteParts(const std::vector<handover::v1::Part>& parts);
base::Result<std::vector<handover::v1::Part>> ReadParts(const handover::Descriptor& file);

// Counts alone, for a process that leaves. kIo.
base::Result<handover::Descriptor> WriteCounts(const std::vector<metrics::Counted>& counts);
base::Status ReadCounts(const handover::Descriptor& file, metrics::Registry& registry);

// What has been counted between two looks at a registry, the first of them when this is made.
class CountsSince {
 public:
  explicit CountsSince(const std::vector<metrics::Counted>& first) { (void)Difference(first); }
  // Since the last look.
  std::vector<metrics::Counted> Difference(std::vector<metrics::Counted> now);
  // What the last look has found could not be told: the next one finds it again.
  void Again(const std::vector<metrics::Counted>& found);

 private:
  using Key = std::pair<std::string, std::string>;
  static Key KeyOf(const metrics::Counted& counted) { return {counted.name, counted.labels + '\n' + counted.by}; }
  std::map<Key, metrics::Counted> last_;  // by name, and labels with the value of `by`
};

}  // namespace sluice::server
