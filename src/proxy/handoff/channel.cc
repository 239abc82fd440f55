#include "proxy/handoff/channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/buffer_chain.h"

namespace sluice::proxy {

using base::Slice;

namespace {
static_assert(sizeof(Item) % 8 == 0 && alignof(Slice) <= 8);
}  // namespace

Batch::~Batch() {
  DropItems();
  if (block_ != nullptr) block_->Unref();
}

void Batch::Prepare(size_t bytes) {
  const size_t capacity = std::max(bytes, kBytes);
  // Slices of the last batch's DATA may be alive yet; a block for one long header list is not kept.
  if (block_ != nullptr && (block_->capacity() != capacity || !block_->Unique()))
    std::exchange(block_, nullptr)->Unref();
  if (block_ == nullptr) block_ = base::Block::New(capacity);
  used_ = 0;
}

void Batch::Finish(Item& item, size_t payload_bytes) {
  item.bytes = static_cast<uint32_t>(AlignUp(sizeof(Item) + payload_bytes));
  used_ += item.bytes;
}

Slice Batch::TakeData(Item& item) {
  if (!item.is_slice) return item.number == 0 ? Slice() : Slice(block_, item.payload(), item.number);
  auto* held = reinterpret_cast<Slice*>(item.payload());
  Slice out = std::move(*held);
  held->~Slice();
  return out;
}

void Batch::DropItems() {
  TakeItems([this](Item& item) {
    if (item.kind == ItemKind::kData) TakeData(item);
  });
}

void Batch::OnDelivered() {
  channel_.reader().OnBatch(channel_, *this);
  channel_.Return(*this);
}

void Batch::OnDropped() {
  DropItems();
  channel_.Return(*this);
}

WorkerChannel::WorkerChannel(runtime::Worker& from, runtime::Worker& to, BatchReader& reader)
    : from_(from), to_(to), reader_(reader) {}

WorkerChannel::~WorkerChannel() {
  delete current_;
  for (Batch* batch = free_; batch != nullptr;) delete std::exchange(batch, batch->next_free);
  for (concurrent::MpscNode* node = returned_.Close(); node != nullptr;) {
    delete static_cast<Batch*>(std::exchange(node, node->mpsc_next));
  }
}

void WorkerChannel::TakeReturned() {
  for (concurrent::MpscNode* node = returned_.TakeAll(); node != nullptr;) {
    auto* batch = static_cast<Batch*>(std::exchange(node, node->mpsc_next));
    // One worker reads all batches, in order. What a runtime that has ended dropped comes back in another; no item is
    // looked at any more then.
    read_ = std::max(read_, batch->number);
    if (free_count_ == kFreeBatchesMax) {
      delete batch;
      continue;
    }
    batch->next_free = free_;
    free_ = batch;
    ++free_count_;
  }
}

bool WorkerChannel::HasRead(uint64_t number) {
  if (read_ < number) TakeReturned();
  return read_ >= number;
}

Batch* WorkerChannel::TakeBatch() {
  if (free_ == nullptr) TakeReturned();
  if (free_ == nullptr) return new Batch(*this);
  --free_count_;
  return std::exchange(free_, free_->next_free);
}

// Never fails: the queue is closed by the destructor only.
void WorkerChannel::Return(Batch& batch) { returned_.Push(batch); }

Item& WorkerChannel::Begin(ItemKind kind, size_t payload_max) {
  const size_t bytes = AlignUp(sizeof(Item) + payload_max);
  if (current_ != nullptr && !current_->HasRoom(bytes)) SendBatch();
  if (current_ == nullptr) {
    current_ = TakeBatch();
    current_->Prepare(bytes);
    from_.AtTurnEnd(*this);
  }
  Item& item = current_->Begin();
  item.kind = kind;
  return item;
}

void WorkerChannel::SendBatch() {
  Batch* batch = std::exchange(current_, nullptr);
  batch->number = ++sent_;
  if (!to_.Send(*batch)) batch->OnDropped();
}

void WorkerChannel::Flush() {
  while (SentBytes* sent = sent_later_.PopFront()) {
    if (const size_t bytes = std::exchange(sent->bytes, 0)) Number(ItemKind::kSent, sent->call, bytes);
  }
  if (current_ != nullptr) SendBatch();
}

void WorkerChannel::SentLater(SentBytes& sent) {
  if (sent.linked()) return;
  sent_later_.PushBack(sent);
  from_.AtTurnEnd(*this);
}

void WorkerChannel::Start(CallName call, ClientName client, const http2::HeaderList& fields, bool end_stream,
                          base::TimePoint started) {
  Item& item = Begin(ItemKind::kStart, MirrorSender::BytesMax(fields));
  item.to = Half::kAway;
  item.call = call;
  item.client = client;
  item.end_stream = end_stream;
  item.number = static_cast<uint64_t>(started.time_since_epoch().count());
  current_->Finish(item, mirror_.Write(fields, item.payload()));
}

void WorkerChannel::Headers(Half to, CallName call, const http2::HeaderList& fields, bool end_stream) {
  Item& item = Begin(ItemKind::kHeaders, MirrorSender::BytesMax(fields));
  item.to = to;
  item.call = call;
  item.end_stream = end_stream;
  current_->Finish(item, mirror_.Write(fields, item.payload()));
}

void WorkerChannel::Data(Half to, CallName call, const Slice& bytes, bool end_stream) {
  const size_t size = bytes.size();
  const bool copied = size < base::BufferChain::kCopyBelow;
  const size_t payload = copied ? size : sizeof(Slice);
  Item& item = Begin(ItemKind::kData, payload);
  item.to = to;
  item.call = call;
  item.end_stream = end_stream;
  item.is_slice = !copied;
  item.number = size;
  if (!copied) {
    new (item.payload()) Slice(bytes);
  } else if (size > 0) {
    std::memcpy(item.payload(), bytes.data(), size);
  }
  current_->Finish(item, payload);
}

void WorkerChannel::Reset(Half to, CallName call, http2::ErrorCode code, http2::ResetCause cause) {
  Item& item = Begin(ItemKind::kReset, 0);
  item.to = to;
  item.call = call;
  item.cause = cause;
  item.number = static_cast<uint64_t>(code);
  current_->Finish(item, 0);
}

void WorkerChannel::Number(ItemKind kind, CallName call, uint64_t number) {
  Item& item = Begin(kind, 0);
  item.to = kind == ItemKind::kSent ? Half::kAway : Half::kHome;
  item.call = call;
  item.number = number;
  current_->Finish(item, 0);
}

void WorkerChannel::Client(ItemKind kind, ClientName client) {
  Item& item = Begin(kind, 0);
  item.to = kind == ItemKind::kClientGone ? Half::kAway : Half::kHome;
  item.client = client;
  current_->Finish(item, 0);
}

}  // namespace sluice::proxy
