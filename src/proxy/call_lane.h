// CallLane: what one worker has to say to another about calls that moved: batches of items, in order, without
// allocation.
//
//   sender's turn                                receiver's turn
//   Start, Data, Headers, ... -> batch --Send--> its inbox -> CallMover::OnBatch, item by item
//          ^                                          |
//          +---- free batches <---- returned_ <-------+
//
// Items gather in a batch that is sent at the end of the sender's turn, or when it is full, or by Flush: so one message
// and at most one wake-up a turn carry what happened to many calls. Headers go through a FieldMirror. DATA below
// BufferChain::kCopyBelow is copied into the batch and read there in place (the batch's block is counted, as a
// connection's read block is); larger DATA goes as a Slice.
//
// Bound: HTTP/2's windows. What is under way in a lane counts in its stream's receive window until the other worker's
// connection has framed it and the credit has come back.
//
// Thread safety: the sender's worker, but for Return (any thread). Mail handed to the inbox orders all the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/slice.h"
#include "concurrent/mpsc_queue.h"
#include "http2/field_mirror.h"
#include "http2/stream_io.h"
#include "proxy/moved_call.h"
#include "runtime/worker.h"

namespace sluice::proxy {

class CallLane;
class CallMover;

// Home: the worker of the client's connection. Away: where the call runs.
enum class ItemKind : uint8_t {
  kStart,        // home -> away: a call, with its headers
  kHeaders,      // either way: home's are trailers
  kData,         // either way
  kReset,        // either way: home's is StreamEvents::OnReset, away's StreamIo::Reset
  kSent,         // home -> away: StreamEvents::OnSent
  kConsume,      // away -> home
  kRelease,      // away -> home: the last word about the call
  kClientGone,   // home -> away: the connection has gone, no more calls of it
  kClientFreed,  // away -> home: the last word about the client
};

// Which half of a moved call an item is for.
enum class Half : uint8_t { kHome, kAway };

struct Item {
  uint32_t bytes = 0;  // with this head and what follows, a multiple of 8
  ItemKind kind = ItemKind::kData;
  Half to = Half::kHome;
  bool end_stream = false;
  bool is_slice = false;                                    // kData: a Slice follows, else the bytes
  http2::ResetCause cause = http2::ResetCause::kPeerReset;  // kReset
  MovedCall* call = nullptr;
  AwayClient* client = nullptr;  // kStart, kClient*
  uint64_t number = 0;           // bytes, an error code, or nanoseconds of the clock

  uint8_t* payload() { return reinterpret_cast<uint8_t*>(this + 1); }
};

// Items in one block of memory.
class Batch final : public runtime::Mail {
 public:
  static constexpr size_t kBytes = 16384;

  explicit Batch(CallLane& lane) : lane_(lane) {}
  ~Batch();
  // Empty, with room for an item of `bytes`.
  void Prepare(size_t bytes);
  bool HasRoom(size_t bytes) const { return block_->capacity() - used_ >= bytes; }
  bool empty() const { return used_ == 0; }
  // Writes the head of an item that may take up to `bytes` more; SetBytes says how many it took.
  Item& Begin() { return *new (block_->data() + used_) Item(); }
  void Finish(Item& item, size_t payload_bytes);
  // Takes the items out, in order.
  template <typename Fn>
  void TakeItems(Fn&& fn) {
    for (size_t at = 0; at < used_;) {
      Item& item = *reinterpret_cast<Item*>(block_->data() + at);
      at += item.bytes;
      fn(item);
    }
    used_ = 0;
  }
  // The bytes of a kData item. Once.
  base::Slice TakeData(Item& item);
  // Frees what items hold.
  void DropItems();

  void OnDelivered() override;
  void OnDropped() override;

  Batch* next_free = nullptr;

 private:
  CallLane& lane_;
  base::Block* block_ = nullptr;
  size_t used_ = 0;
};

class CallLane final : private runtime::TurnHook {
 public:
  CallLane(CallMover& from, CallMover& to);
  // When no worker runs.
  ~CallLane();

  // Of the calls that leave the sender's worker on this lane. One call is one object on both sides.
  MovedCall& NewCall();
  void FreeCall(MovedCall& call);
  AwayClient& NewClient(const ClientPtr& client, long calls_max);
  void FreeClient(AwayClient& client);

  void Start(MovedCall& call, AwayClient& client, const http2::HeaderList& fields, bool end_stream,
             base::TimePoint started);
  void Headers(Half to, MovedCall& call, const http2::HeaderList& fields, bool end_stream);
  void Data(Half to, MovedCall& call, const base::Slice& bytes, bool end_stream);
  void Reset(Half to, MovedCall& call, http2::ErrorCode code, http2::ResetCause cause);
  // kSent, kConsume, kRelease.
  void Number(ItemKind kind, MovedCall& call, uint64_t number);
  void Client(ItemKind kind, AwayClient& client);
  // At the turn's end kSent is said of it, unless its response is complete by then.
  void SentLater(HomeStream& stream);

  // Sends what there is.
  void Flush();
  // A batch that has been read. Any thread.
  void Return(Batch& batch);

  CallMover& from() { return from_; }
  CallMover& to() { return to_; }

 private:
  // Empty batches kept.
  static constexpr size_t kFreeBatchesMax = 4;
  // Calls kept for later: about 200 KiB.
  static constexpr size_t kFreeCallsMax = 1024;

  void OnTurnEnd() override { Flush(); }
  Item& Begin(ItemKind kind, size_t payload_max);
  void SendBatch();
  Batch* TakeBatch();

  CallMover& from_;
  CallMover& to_;
  http2::MirrorSender mirror_;
  Batch* current_ = nullptr;  // null or not empty
  Batch* free_ = nullptr;
  size_t free_count_ = 0;
  // Pushed to by who has read them, on any thread; taken whole by the sender.
  concurrent::MpscQueue returned_;
  base::IntrusiveList<HomeStream, HomeStream> sent_later_;
  base::IntrusiveList<MovedCall, MovedCall> calls_;  // in use
  MovedCall* free_calls_ = nullptr;
  size_t free_calls_count_ = 0;
  base::IntrusiveList<AwayClient, AwayClient> clients_;
};

}  // namespace sluice::proxy
