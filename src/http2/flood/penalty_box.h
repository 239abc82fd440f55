// PenaltyBox: addresses of which a connection was ended for abuse a short while ago.
//
// A peer that is cut off may connect again at once with budgets that are full again, so what one connection may do is
// no bound on what an address may. New connections from such an address are therefore read only after
// LifeOptions::abuse_delay. They are not refused: behind one address, and behind 127.0.0.1 above all, there are others.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>

#include "base/clock.h"

namespace sluice::http2 {

// Thread safety: all functions from any thread; never suspends. Asking costs one load while no peer misbehaves.
class PenaltyBox {
 public:
  static constexpr std::chrono::seconds kRemembered{10};
  static constexpr size_t kAddressesMax = 4096;  // beyond, the one that would be forgotten first goes

  // A connection of `peer` ("192.0.2.7:40000", "unix:...": net::PeerAddressKey; Unix sockets count as one) was ended
  // now.
  void Note(std::string_view peer, base::TimePoint now);
  // Less than kRemembered has passed since then.
  bool Has(std::string_view peer, base::TimePoint now) const;
  size_t size() const;

 private:
  void MakeRoom(base::TimePoint now);

  // When the last one of all is forgotten. Relaxed: a reader on another worker may take a new one for none, as if it
  // had come a little earlier.
  std::atomic<base::TimePoint> until_{base::TimePoint::min()};
  mutable std::mutex mutex_;
  std::map<uint64_t, base::TimePoint> addresses_;  // when each is forgotten. A tree: peers choose the keys
};

}  // namespace sluice::http2
