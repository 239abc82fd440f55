// OverloadManager: what one worker does while the process holds too much memory (base/memory_budget.h).
//
//   kTight  spare memory goes back to the heap, and slow clients with data waiting for them are closed
//   kFull   reading stops on every connection, because input only adds memory. Calls under way drop what they keep for
//           another attempt, and fetches for the cache collect no more. Clients are given less patience, also where no
//           data waits for them and their calls only rest
//   kOver   new calls are refused (RESOURCE_EXHAUSTED, memory_limited, with pushback). If that lasts, clients that hold
//           more than they move are closed, the largest first
//
// An honest call waits a little before any is refused, and none is refused while there is a slow client to close:
// between kFull and kOver is an eighth of the limit, and only bites and reads that had begun add to it.
//
// A client is slow if, at its rate over the last kPatience, draining the bytes held at both ends of it would take
// longer than kSlowTight (kSlowFull). New clients are therefore never slow. Clients that hold little (kLittleBytes) are
// spared until closing others has not helped: else many small ones could keep reading stopped for ever.
//
// The largest part of what does not move goes first, counted for each address (net::PeerAddressKey), so that a thousand
// small connections do not make the one large client beside them the largest. Each worker closes its own clients, but
// none of an address that has less than half of what the first one has on any worker: the workers tell each other at
// the look, and act a tick later. Output of closed connections that is still to be written is not counted twice.
//
// Memory is freed by writing, which goes on. Writing may need input: a client's WINDOW_UPDATE, or an endpoint's
// response for which a request is kept. So connections whose reading has stopped take turns in reading a bite,
// kBitesPerTick of kBiteBytes each kTick: none waits for ever, and together they add at most 1.6 MB a second (up to
// kBitesPerTick workers). As kOver closes the largest holders until it is over, there is no deadlock.
//
// Thread safety: its worker's. Costs nothing while the level is kFree: the first read told of another level wakes the
// managers of all workers, because the connection that reads too much need not be that of the client that holds it. A
// manager that is awake wakes the others at each look.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "base/memory_budget.h"
#include "http2/connection/connection.h"
#include "proxy/downstream/connection.h"
#include "runtime/timer_wheel.h"

namespace sluice::proxy {

class OverloadManager final : public http2::MemoryWatch, private runtime::Timer {
 public:
  static constexpr std::chrono::milliseconds kTick{20};
  // Between two looks at what clients hold.
  static constexpr std::chrono::milliseconds kPatience{500};
  static constexpr std::chrono::seconds kSlowTight{32};
  static constexpr std::chrono::seconds kSlowFull{4};
  // A client that holds less is not closed for being slow; and at kOver, where no client may be to blame (a limit
  // too low for so many workers), not for being among the largest. Half of it after every kLooksToHalve looks from
  // kFull on, which have not helped.
  static constexpr size_t kLittleBytes = 64 * 1024;
  static constexpr size_t kLittleBytesOver = 16 * 1024;
  static constexpr size_t kLittleBytesMin = 4 * 1024;
  static constexpr uint32_t kLooksToHalve = 4;
  // What a call may come to hold while it waits for its endpoint: the calls under way are too many for a pressed worker
  // (http2/connection/intake.h) where so much for each would be half of the limit.
  static constexpr int64_t kCallBytes = 16 * 1024;
  // Of all workers together, but at least one of each.
  static constexpr int kBitesPerTick = 8;

  // `clients`: the worker's; both outlive this.
  OverloadManager(CallContext& context, ClientConnections& clients) : context_(context), clients_(clients) {}
  ~OverloadManager();

  // Before the workers run.
  static void Connect(std::span<OverloadManager* const> all);

  // http2::MemoryWatch
  void OnScarce(bool paused) override;
  bool TooManyCalls() const override;

 private:
  // A client that may be closed.
  struct Holder {
    HeldForClient held;
    DownstreamConnection* client;
    size_t of_address;  // what all of its address hold of which nothing moves
  };
  void Wake();
  void WakeOthers();
  void OnTimer(base::TimePoint now) override;
  void GiveBack(base::MemoryLevel level);
  void LookAtClients(base::MemoryLevel level);
  void EndHolders(base::MemoryLevel level);
  std::vector<Holder> Holders(base::MemoryLevel level) const;

  CallContext& context_;
  ClientConnections& clients_;
  std::vector<OverloadManager*> others_;
  base::TimePoint look_at_{};
  bool looked_ = false;      // holders are to be ended at the next tick
  uint32_t full_looks_ = 0;  // from kFull on, in a row
  // For the other workers. Relaxed: what they do is right by and large with any value of the last second.
  std::atomic<bool> awake_{false};
  std::atomic<size_t> largest_{0};  // Holder::of_address, of the last look
  std::atomic<size_t> leaving_{0};  // HeldForClient::leaving, all clients
};

}  // namespace sluice::proxy
