// PenaltyBox: addresses of which connections were ended for abuse a short while ago.
//
// A peer that is cut off may connect again at once with budgets that are full again, so what one connection may do is
// no bound on what an address may. New connections from such an address are therefore read only after a while. They are
// not refused: behind one address, and behind 127.0.0.1 above all, there are others. These pay for an offender too, so
// the wait grows with the square of how often the address offends: once costs 1/64 of LifeOptions::abuse_delay. A peer
// that comes back each time it is cut off is soon at all of it.
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
  static constexpr uint32_t kCountMax = 8;                   // from so many offences on the wait is a whole one
  static constexpr std::chrono::milliseconds kForgets{500};  // one of them
  static constexpr size_t kAddressesMax = 4096;              // beyond, the one that would be forgotten first goes

  // A connection of `peer` ("192.0.2.7:40000", "unix:...": net::PeerAddressKey; Unix sockets count as one) was ended
  // now.
  void Note(std::string_view peer, base::TimePoint now);
  // How often lately, 0 to kCountMax.
  uint32_t Count(std::string_view peer, base::TimePoint now) const;
  // A new connection of that address waits so long: `most` where the count is kCountMax.
  base::Nanos Wait(std::string_view peer, base::TimePoint now, base::Nanos most) const;
  size_t size() const;

 private:
  void MakeRoom(base::TimePoint now);

  // When the last one of all is forgotten. Relaxed: a reader on another worker may take a new one for none, as if it
  // had come a little earlier.
  std::atomic<base::TimePoint> until_{base::TimePoint::min()};
  mutable std::mutex mutex_;
  std::map<uint64_t, base::TimePoint> addresses_;  // when all of each is forgotten. A tree: peers choose the keys
};

}  // namespace sluice::http2
