// CallMover: lets calls of one connection run on several workers. One a worker, where there are several.
//
// While its worker is behind (MovePolicy) a new call is held until the turn's I/O is done: by then most have come
// whole. Then some start here, with the stream itself, as they would have without this; the others go to other workers,
// with all that has come of them (moved_call.h, call_lane.h), and start there. A call never moves after it has started.
//
//   OnRequest --not active--> Call::Start, here
//       |
//       +--active--> HeldCall -----OnIoEnd: Plan--> Call::Start, here, and what came meanwhile is told to it
//                        ^ DATA, END, RST               |
//                                                       +--> kStart, kData ... on a lane --> CallMover::OnBatch there
//
// So it is the busy worker that gives, at a point where it holds the call alone; nobody takes from it. There is no
// state in which a call is half taken, and no atomic operation for a call that stays (private deques: Acar,
// Chargueraud, Rainey, PPoPP 2013). docs/call-movement.md says what is lost by that.
//
// Thread safety: its worker; OnBatch is called there too. open_away and counters: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "http2/field_mirror.h"
#include "http2/stream_io.h"
#include "proxy/call_lane.h"
#include "proxy/move_policy.h"
#include "proxy/moved_call.h"

namespace sluice::http2 {
class Stream;
}

namespace sluice::proxy {

struct WorkerContext;

class CallMover final : private runtime::IoHook {
 public:
  // Gives each of the contexts, in the order of their workers, a mover, if there are several. Before the runtime
  // starts.
  static void Connect(std::span<WorkerContext* const> contexts);
  // When no worker runs.
  ~CallMover();

  // Hold the next request. Samples the load once a period.
  bool active() {
    if (mode_ != Mode::kAuto) return mode_ == Mode::kAlways;
    if (worker().now() != last_call_) BeginTurn();
    ++calls_seen_;
    return policy_.active();
  }
  // From OnRequest. `away`: the connection's. `calls_max`: what one worker may have alive of it.
  http2::StreamEvents* Hold(http2::Stream& stream, const ClientPtr& client, AwayClients& away, long calls_max,
                            http2::HeaderList fields, bool end_stream);

  // From now on calls stay, those held too. For the end of the worker.
  void Stop();
  // No call of this worker's connections is held or runs elsewhere.
  bool Idle() const { return pending_.empty() && open_away_ == 0; }
  // Sends what the lanes hold.
  void Flush();

  // A batch from another worker.
  void OnBatch(CallLane& lane, Batch& batch);

  WorkerContext& context() { return context_; }
  runtime::Worker& worker();

  // Observations, any thread.
  struct Stats {
    uint64_t moved = 0;  // calls of this worker's connections that went elsewhere
    uint64_t taken = 0;  // calls of other workers' connections that started here
  };
  Stats stats() const { return {moved_.load(std::memory_order_relaxed), taken_.load(std::memory_order_relaxed)}; }

  // kAlways: every call moves, to the other workers in turn.
  enum class Mode : uint8_t { kAuto, kAlways, kNever };
  void SetModeForTest(Mode mode) { mode_ = mode; }

 private:
  friend class CallLane;
  struct HeldCall;
  struct Target {
    CallMover* mover = nullptr;
    std::unique_ptr<CallLane> lane;                 // to it; made when there is something to say
    std::unique_ptr<http2::MirrorReceiver> fields;  // from it
    base::Nanos cpu{0};                             // at the last sample
  };

  CallMover(WorkerContext& context, size_t workers);

  void OnIoEnd() override;
  void StartHere(HeldCall& call);
  void StartAway(HeldCall& call, Target& target);
  void Free(HeldCall& call);
  void BeginTurn();
  void TakeSample();
  void StartTaken(Target& home, Item& item);
  void TellHome(Target& away, Batch& batch, Item& item);
  void TellAway(Target& home, Batch& batch, Item& item);
  CallLane& LaneTo(Target& target);
  http2::MirrorReceiver& FieldsFrom(Target& target);
  // The worker `step` places behind this one. 1..targets.
  Target& TargetAfter(size_t step);
  static void Count(std::atomic<uint64_t>& counter, uint64_t by) {  // one writer: no RMW
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  WorkerContext& context_;
  std::vector<Target> targets_;  // by worker's index; its own place is empty
  Mode mode_ = Mode::kAuto;
  MovePolicy policy_;
  std::vector<uint32_t> plan_;
  size_t next_forced_ = 1;  // kAlways: whose turn it is
  absl::InlinedVector<HeldCall*, 16> pending_;
  std::vector<std::unique_ptr<HeldCall>> calls_;  // all there are
  std::vector<HeldCall*> free_;
  uint32_t open_away_ = 0;

  // The last sample.
  base::TimePoint next_sample_{}, sampled_{};
  uint64_t sampled_idle_ = 0, sampled_moved_ = 0;
  // Since then: new calls, and turns with some.
  uint64_t calls_seen_ = 0, turns_seen_ = 0;
  base::TimePoint last_call_{};  // the turn of the last new call
  base::Nanos sampled_cpu_{0};
  std::vector<double> sample_;

  std::atomic<uint64_t> moved_{0}, taken_{0};
};

}  // namespace sluice::proxy
