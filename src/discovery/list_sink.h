// ListSink: where the lists of sources go, and what becomes of them there.
#pragma once

#include <cstdint>
#include <string>

#include "discovery/list.h"
#include "discovery/options.h"

namespace sluice::discovery {

// What became of a list.
struct PutResult {
  enum class Kind : uint8_t {
    kDone,
    kMovesTooMuch,  // more than was allowed; nothing has changed
    kOverridden,    // a list by RPC is in force, and stays
    kRefused,       // it is no list that the cluster may have
    kLater,         // the cluster is busy, or the state file cannot be written
  } kind = Kind::kDone;
  double moved = 0;     // share of the keys, 0..1
  std::string error{};  // of kRefused and kLater
  bool changed = true;  // of kDone: false where that list was in force already
};

// Where lists go. Any thread but a worker's; may block.
class ListSink {
 public:
  virtual ~ListSink() = default;
  // Puts the list in force if that moves at most `moved_max` of the keys. `source`: as the cluster's is configured;
  // lists of one that was are refused.
  virtual PutResult Put(const std::string& cluster, const DiscoveryOptions& source, const List& list,
                        double moved_max) = 0;
};

}  // namespace sluice::discovery
