// Handoff: lets calls of one connection run on several workers. One a worker, where there are several.
//
// While its worker is behind (HandoffController) a new request is buffered until the turn's I/O is done: by then most
// have arrived whole. Then some start here, with the stream itself; the others go to other workers with all that has
// arrived of them (remote_call.h, channel.h), and start there. A call never moves after it has started.
//
//   OnRequest --not active--> Call::Start, here
//       |
//       +--active--> Pending ------OnIoEnd: Plan--> HandoffOwner::StartHere
//                        ^ DATA, END, RST               |
//                                                       +--> kStart, kData ... on a channel --> OnBatch there
//
// The busy worker gives, at a point where it owns the call alone; idle workers do not take. So a call is never half
// taken, and one that stays costs no atomic operation (private deques: Acar, Chargueraud, Rainey, PPoPP 2013).
// docs/call-movement.md names the price.
//
// Thread safety: its worker's, but for stats().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "http2/session/stream_io.h"
#include "proxy/canonical/request.h"
#include "proxy/handoff/channel.h"
#include "proxy/handoff/controller.h"
#include "proxy/handoff/field_mirror.h"
#include "proxy/handoff/remote_call.h"

namespace sluice::proxy {

struct BufferedRequest;
struct CallContext;

// Takes the requests that stay on their connection's worker.
class HandoffOwner {
 public:
  // Answers the request or makes a Call of it; it has given away what it held. Not from inside an event of its stream.
  virtual void StartHere(BufferedRequest& request) = 0;

 protected:
  ~HandoffOwner() = default;
};

class Handoff final : private runtime::IoHook, private BatchReader {
 public:
  // `workers`: how many there are, at least 2.
  Handoff(CallContext& context, HandoffOwner& owner, size_t workers);
  // When no worker runs.
  ~Handoff();
  // One for each worker, in the order of the workers. Before the runtime starts.
  static void Connect(std::span<Handoff* const> all);

  // Whether to Buffer the next request. Samples the load once a period.
  bool active() {
    if (mode_ != Mode::kAuto) return mode_ == Mode::kAlways;
    if (worker().now() != last_call_) BeginTurn();
    ++calls_seen_;
    return policy_.active();
  }
  // From OnRequest. `away`: the connection's. `calls_max`: what one worker may have alive of it.
  http2::StreamEvents* Buffer(http2::RequestStream& stream, const ClientPtr& client, AwayClients& away, long calls_max,
                              CanonicalRequest&& fields, bool end_stream);

  // From now on calls stay, buffered ones too. For the end of the worker.
  void Stop();
  // No call of this worker's connections is buffered or runs elsewhere.
  bool Idle() const;
  // Sends what the channels contain.
  void Flush();

  runtime::Worker& worker() const;

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
  class Pending;
  struct Target {
    Handoff* handoff = nullptr;
    std::unique_ptr<RemoteCalls> calls;      // there; made when there is something to say
    std::unique_ptr<MirrorReceiver> fields;  // from it
    base::Nanos cpu{0};                      // at the last sample
  };

  void OnIoEnd() override;
  void OnBatch(WorkerChannel& channel, Batch& batch) override;
  void StartAway(Pending& request, Target& target);
  void BeginTurn();
  void TakeSample();
  void StartTaken(Target& home, Item& item);
  void TellHome(Target& away, Batch& batch, Item& item);
  void TellAway(Target& home, Batch& batch, Item& item);
  RemoteCalls& CallsOn(Target& target);
  MirrorReceiver& FieldsFrom(Target& target);
  // The worker `step` places behind this one. 1..targets.
  Target& TargetAfter(size_t step);
  static void Count(std::atomic<uint64_t>& counter, uint64_t by) {  // one writer: no RMW
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  CallContext& context_;
  HandoffOwner& owner_;
  std::vector<Target> targets_;  // by worker's index; its own place is empty
  Mode mode_ = Mode::kAuto;
  HandoffController policy_;
  std::vector<uint32_t> plan_;
  size_t next_forced_ = 1;                     // kAlways: whose turn it is
  absl::InlinedVector<Pending*, 16> pending_;  // owned

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
