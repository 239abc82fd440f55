// ListSink: where the lists of sources go, and what becomes of them there.
#pragma once

#include <cstdint>
#include <string>

#include "discovery/list.h"

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
  double moved = 0;   // share of the keys, 0..1
  std::string error;  // of kRefused and kLater
};

// Where lists go. Any thread but a worker's; may block.
class ListSink {
 public:
  virtual ~ListSink() = default;
  // Puts the list in force if that moves at most `moved_max` of the keys. `source`: DiscoveryOptions::Name.
  virtual PutResult Put(const std::string& cluster, const std::string& source, const List& list, double moved_max) = 0;
};

}  // namespace sluice::discovery
