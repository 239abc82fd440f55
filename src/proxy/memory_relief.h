// MemoryRelief: what one worker does when the process holds too much (base/memory_budget.h), and when that is over.
//
//   kTight  spare memory goes back to the heap, and clients that are slow to take what waits for them are sent away
//   kFull   reading stops, on every connection: whatever comes can only add now. Calls under way give up what is only
//   kept
//           for another attempt, fetches for the cache collect no more, and of a client less patience is asked for,
//           also where nothing waits for it and its calls only rest
//   kOver   new calls are refused (RESOURCE_EXHAUSTED, memory_limited, with pushback); if that lasts, whoever holds
//   more than
//           moves is sent away
//
// So an honest call waits a little before any is refused, and none is while there is a slow client to end: between
// kFull and kOver is an eighth of the limit, and only bites and reads that had begun add to it.
//
// Slow: at the pace of the last kPatience a client would take longer than kSlowTight or kSlowFull for what was held at
// both ends of it. So nobody is who has just come, or for whom something has. Those that hold little are let be
// (kLittleBytes), until that has not helped: else many small ones could keep reading stopped for ever.
//
// Who goes: the largest part of what does not move, counted for each address (net::PeerAddressKey), so that a thousand
// small connections do not make the one large client beside them the largest. Each worker ends its own, but none of an
// address that has less than half of what the first one has, on any worker: for that all tell each other at the look,
// and act a tick later. What is on its way out already (last words that nobody reads) is not waited for twice.
//
// What is held goes away by being written, which goes on. But a peer may have to be heard for that: a client's
// WINDOW_UPDATE, an endpoint's response for which a request is kept. So connections whose reading has stopped take
// turns in reading a bite, kBitesPerTick of kBiteBytes each kTick: nothing waits for ever, and they add at most 1.6 MB
// a second (up to kBitesPerTick workers). As kOver ends the clients that hold the most until it is over, there is no
// deadlock.
//
// Belongs to its worker. Costs nothing while the level is kFree: the first read told of another one wakes it, on all
// workers, because who reads too much need not have the clients that hold it. Who is awake wakes the others again at
// each look.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "base/memory_budget.h"
#include "http2/connection.h"
#include "runtime/timer_wheel.h"

namespace sluice::proxy {

class DownstreamConnection;
struct WorkerContext;

// What was held for a client at the last look and still is, and how much moved meanwhile.
struct HeldForClient {
  size_t waiting = 0;  // data that has yet to go somewhere
  size_t resting = 0;  // calls and their metadata
  size_t moved = 0;
  size_t leaving = 0;  // of a connection that has ended: what is left of its output. Then all else is 0

  size_t bytes() const { return waiting + resting; }
  size_t still() const { return bytes() > moved ? bytes() - moved : 0; }
};

class MemoryRelief final : public http2::MemoryWatch, private runtime::Timer {
 public:
  static constexpr std::chrono::milliseconds kTick{20};
  // Between two looks at what clients hold.
  static constexpr std::chrono::milliseconds kPatience{500};
  static constexpr std::chrono::seconds kSlowTight{32};
  static constexpr std::chrono::seconds kSlowFull{4};
  // A client that holds less is not sent away for being slow; and at kOver, where what is held may be nobody's (a limit
  // too low for so many workers), not for being among the largest. Half of it after every kLooksToHalve looks from
  // kFull on, which have not helped.
  static constexpr size_t kLittleBytes = 64 * 1024;
  static constexpr size_t kLittleBytesOver = 16 * 1024;
  static constexpr size_t kLittleBytesMin = 4 * 1024;
  static constexpr uint32_t kLooksToHalve = 4;
  // Of all workers together, but at least one of each.
  static constexpr int kBitesPerTick = 8;
  // What a client that was refused is asked to wait.
  static constexpr std::chrono::milliseconds kPushback{1000};

  explicit MemoryRelief(WorkerContext& context) : context_(context) {}
  ~MemoryRelief();

  // Before the workers run.
  static void Connect(std::span<WorkerContext* const> contexts);

  // http2::MemoryWatch
  void OnScarce(bool paused) override;

 private:
  // A client that may be sent away.
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

  WorkerContext& context_;
  std::vector<WorkerContext*> others_;
  base::TimePoint look_at_{};
  bool looked_ = false;      // holders are to be ended at the next tick
  uint32_t full_looks_ = 0;  // from kFull on, in a row
  // For the other workers. Relaxed: what they do is right by and large with any value of the last second.
  std::atomic<bool> awake_{false};
  std::atomic<size_t> largest_{0};  // Holder::of_address, of the last look
  std::atomic<size_t> leaving_{0};  // HeldForClient::leaving, all clients
};

}  // namespace sluice::proxy
