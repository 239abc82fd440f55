// MemoryRelief: what one worker does when the process holds too much (base/memory_budget.h), and when that is over.
//
//   kTight  spare memory goes back to the heap, and clients that are slow to take what is held for them are sent away
//   kFull   reading stops, on every connection: whatever comes can only add now. Calls under way give up what is only kept
//           for another attempt, fetches for the cache collect no more, and of a client less patience is asked for
//   kOver   new calls are refused (RESOURCE_EXHAUSTED, memory_limited, with pushback); if that lasts, the clients that hold
//           the most are sent away, slow or not
//
// So an honest call waits a little before any is refused, and none is while there is a slow client to end: between kFull and
// kOver is an eighth of the limit, and only bites and reads that had begun add to it.
//
// Slow: at the pace of the last kPatience a client would take longer than kSlowTight or kSlowFull for what was held at both ends
// of it. So nobody is who has just come, or for whom something has. Those that hold little are let be (kLittleBytes).
//
// What is held goes away by being written, which goes on. But a peer may have to be heard for that: a client's WINDOW_UPDATE,
// an endpoint's response for which a request is kept. So connections whose reading has stopped take turns in reading a bite,
// kBitesPerTick of kBiteBytes each kTick: nothing waits for ever, and they add at most 1.6 MB a second (up to kBitesPerTick
// workers). As kOver ends the clients that hold the most until it is over, there is no deadlock.
//
// Belongs to its worker. Costs nothing while the level is kFree: the first read told of another one wakes it, on all workers,
// because who reads too much need not have the clients that hold it.
#pragma once

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
  size_t bytes = 0;
  size_t moved = 0;
};

class MemoryRelief final : public http2::MemoryWatch, private runtime::Timer {
 public:
  static constexpr std::chrono::milliseconds kTick{20};
  // Between two looks at what clients hold.
  static constexpr std::chrono::milliseconds kPatience{500};
  static constexpr std::chrono::seconds kSlowTight{32};
  static constexpr std::chrono::seconds kSlowFull{4};
  // A client that holds less is not sent away for being slow; and at kOver, where what is held may be nobody's (a limit too low
  // for so many workers), not for being among the largest.
  static constexpr size_t kLittleBytes = 64 * 1024;
  static constexpr size_t kLittleBytesOver = 16 * 1024;
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
  struct Holder {
    HeldForClient held;
    DownstreamConnection* client;
  };
  void Wake();
  void OnTimer(base::TimePoint now) override;
  void GiveBack(base::MemoryLevel level);
  void EndHolders(base::MemoryLevel level);
  std::vector<Holder> LookAtClients();

  WorkerContext& context_;
  std::vector<WorkerContext*> others_;
  base::TimePoint look_at_{};
};

}  // namespace sluice::proxy
