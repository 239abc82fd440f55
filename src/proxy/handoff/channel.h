// WorkerChannel: what one worker has to say to another about calls that moved: batches of items, in order, without
// allocation.
//
//   sender's turn                                receiver's turn
//   Start, Data, Headers, ... -> batch --Send--> its inbox -> BatchReader::OnBatch
//          ^                                          |
//          +---- free batches <---- returned_ <-------+
//
// Batches are numbered in the order they are sent, and come back in it: HasRead(n) says that no item up to batch n will
// be looked at any more, so what those items named may be freed (RemoteCalls::Free).
//
// Items gather in a batch that is sent at the end of the sender's turn, or when it is full, or by Flush: so one message
// and at most one wake-up a turn carry what happened to many calls. Headers go through a FieldMirror. DATA below
// BufferChain::kCopyBelow is copied into the batch and read there in place (the batch's block is counted, as a
// connection's read block is); larger DATA goes as a Slice.
//
// Bound: HTTP/2's windows. DATA in a channel counts in its stream's receive window until the other worker's connection
// has framed it and the credit has come back.
//
// Thread safety: the sender's worker, but for Return (any thread). Mail handed to the inbox orders all the rest.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/slice.h"
#include "concurrent/mpsc_queue.h"
#include "http2/session/stream_io.h"
#include "proxy/handoff/field_mirror.h"
#include "runtime/mailed_ptr.h"
#include "runtime/worker.h"

namespace sluice::proxy {

class WorkerChannel;
struct AwayClient;
struct RemoteCall;

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

// It holds no raw pointer: the objects that it names outlive it (runtime/mailed_ptr.h).
struct Item {
  uint32_t bytes = 0;  // with this head and what follows, a multiple of 8
  ItemKind kind = ItemKind::kData;
  Half to = Half::kHome;
  bool end_stream = false;
  bool is_slice = false;                                    // kData: a Slice follows, else the bytes
  http2::ResetCause cause = http2::ResetCause::kPeerReset;  // kReset
  runtime::MailedPtr<RemoteCall> call;
  runtime::MailedPtr<AwayClient> client;  // kStart, kClient*
  uint64_t number = 0;                    // bytes, an error code, or nanoseconds of the clock

  uint8_t* payload() { return reinterpret_cast<uint8_t*>(this + 1); }
};

// Items in one block of memory.
class Batch final : public runtime::Mail {
 public:
  static constexpr size_t kBytes = 16384;

  explicit Batch(WorkerChannel& channel) : channel_(channel) {}
  ~Batch();
  // Empty, with room for an item of `bytes`.
  void Prepare(size_t bytes);
  bool HasRoom(size_t bytes) const { return block_->capacity() - used_ >= bytes; }
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
  uint64_t number = 0;  // of the channel's batches, from 1 on; the sender's

 private:
  WorkerChannel& channel_;
  base::Block* block_ = nullptr;
  size_t used_ = 0;
};

// The receiving worker's end of its channels. Thread safety: the receiver's worker.
class BatchReader {
 public:
  // Reads all items of `batch`, which came through `channel`.
  virtual void OnBatch(WorkerChannel& channel, Batch& batch) = 0;

 protected:
  ~BatchReader() = default;
};

// Response bytes of one call that home's connection has framed since the channel said so last. A node of the channel's
// list while there are some to be said.
struct SentBytes : base::ListNode<SentBytes> {
  runtime::MailedPtr<RemoteCall> call;
  size_t bytes = 0;
};

class WorkerChannel final : private runtime::TurnHook {
 public:
  // `reader`: of worker `to`.
  WorkerChannel(runtime::Worker& from, runtime::Worker& to, BatchReader& reader);
  // When no worker runs.
  ~WorkerChannel();

  using CallName = runtime::MailedPtr<RemoteCall>;
  using ClientName = runtime::MailedPtr<AwayClient>;
  void Start(CallName call, ClientName client, const http2::HeaderList& fields, bool end_stream,
             base::TimePoint started);
  void Headers(Half to, CallName call, const http2::HeaderList& fields, bool end_stream);
  void Data(Half to, CallName call, const base::Slice& bytes, bool end_stream);
  void Reset(Half to, CallName call, http2::ErrorCode code, http2::ResetCause cause);
  // kSent, kConsume, kRelease.
  void Number(ItemKind kind, CallName call, uint64_t number);
  void Client(ItemKind kind, ClientName client);
  // At the turn's end kSent says what `sent` has by then, if that is anything.
  void SentLater(SentBytes& sent);

  // Sends what there is.
  void Flush();
  // A batch that has been read. Any thread.
  void Return(Batch& batch);

  // The number of the batch with the last item that was written; 0 before the first.
  uint64_t LastWritten() const { return sent_ + (current_ != nullptr ? 1 : 0); }
  // The receiver has read the batch with that number, and all before it.
  bool HasRead(uint64_t number);

  // The sender's worker.
  runtime::Worker& from() { return from_; }
  BatchReader& reader() { return reader_; }

 private:
  // Empty batches kept.
  static constexpr size_t kFreeBatchesMax = 4;

  void OnTurnEnd() override { Flush(); }
  Item& Begin(ItemKind kind, size_t payload_max);
  void SendBatch();
  Batch* TakeBatch();
  void TakeReturned();

  runtime::Worker& from_;
  runtime::Worker& to_;
  BatchReader& reader_;
  MirrorSender mirror_;
  Batch* current_ = nullptr;  // null or not empty
  Batch* free_ = nullptr;
  size_t free_count_ = 0;
  uint64_t sent_ = 0;  // batches; the number of the last one
  uint64_t read_ = 0;  // batches that have come back; the number of the last one
  // Batches that have been read: pushed on any thread, taken whole by the sender.
  concurrent::MpscQueue returned_;
  base::IntrusiveList<SentBytes, SentBytes> sent_later_;
};

}  // namespace sluice::proxy
