#include "proxy/call_lane.h"

#include <cstring>

#include "base/buffer_chain.h"
#include "proxy/call_mover.h"

namespace sluice::proxy {

using base::Slice;

namespace {
constexpr size_t AlignUp(size_t bytes) { return (bytes + 7) & ~size_t{7}; }
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
  lane_.to().OnBatch(lane_, *this);
  lane_.Return(*this);
}

void Batch::OnDropped() {
  DropItems();
  lane_.Return(*this);
}

CallLane::CallLane(CallMover& from, CallMover& to) : from_(from), to_(to) {}

CallLane::~CallLane() {
  delete current_;
  for (Batch* batch = free_; batch != nullptr;) delete std::exchange(batch, batch->next_free);
  for (concurrent::MpscNode* node = returned_.Close(); node != nullptr;) {
    delete static_cast<Batch*>(std::exchange(node, node->mpsc_next));
  }
  while (MovedCall* call = calls_.PopFront()) delete call;
  while (MovedCall* call = free_calls_) {
    free_calls_ = call->next_free;
    delete call;
  }
  while (AwayClient* client = clients_.PopFront()) delete client;
}

MovedCall& CallLane::NewCall() {
  MovedCall* call = free_calls_;
  if (call != nullptr) {
    free_calls_ = call->next_free;
    --free_calls_count_;
  } else {
    call = new MovedCall;
  }
  calls_.PushBack(*call);
  ++from_.open_away_;
  return *call;
}

void CallLane::FreeCall(MovedCall& call) {
  --from_.open_away_;
  call.base::ListNode<MovedCall>::Unlink();
  if (free_calls_count_ == kFreeCallsMax) {
    delete &call;
    return;
  }
  call.next_free = free_calls_;
  free_calls_ = &call;
  ++free_calls_count_;
}

AwayClient& CallLane::NewClient(const ClientPtr& client, long calls_max) {
  auto* made = new AwayClient;
  made->lane = this;
  made->calls_max = calls_max;
  made->client = std::make_shared<const proxy::Client>(*client);
  clients_.PushBack(*made);
  return *made;
}

void CallLane::FreeClient(AwayClient& client) { delete &client; }

Batch* CallLane::TakeBatch() {
  if (free_ == nullptr) {
    for (concurrent::MpscNode* node = returned_.TakeAll(); node != nullptr;) {
      auto* batch = static_cast<Batch*>(std::exchange(node, node->mpsc_next));
      if (free_count_ == kFreeBatchesMax) {
        delete batch;
        continue;
      }
      batch->next_free = free_;
      free_ = batch;
      ++free_count_;
    }
  }
  if (free_ == nullptr) return new Batch(*this);
  --free_count_;
  return std::exchange(free_, free_->next_free);
}

// Never fails: the queue is closed by the destructor only.
void CallLane::Return(Batch& batch) { returned_.Push(batch); }

Item& CallLane::Begin(ItemKind kind, size_t payload_max) {
  const size_t bytes = AlignUp(sizeof(Item) + payload_max);
  if (current_ != nullptr && !current_->HasRoom(bytes)) SendBatch();
  if (current_ == nullptr) {
    current_ = TakeBatch();
    current_->Prepare(bytes);
    from_.worker().AtTurnEnd(*this);
  }
  Item& item = current_->Begin();
  item.kind = kind;
  return item;
}

void CallLane::SendBatch() {
  Batch* batch = std::exchange(current_, nullptr);
  if (!to_.worker().Send(*batch)) batch->OnDropped();
}

void CallLane::Flush() {
  while (HomeStream* stream = sent_later_.PopFront()) {
    if (size_t bytes = stream->TakeSent()) Number(ItemKind::kSent, stream->call(), bytes);
  }
  if (current_ != nullptr) SendBatch();
}

void CallLane::SentLater(HomeStream& stream) {
  if (stream.base::ListNode<HomeStream>::linked()) return;
  sent_later_.PushBack(stream);
  from_.worker().AtTurnEnd(*this);
}

void CallLane::Start(MovedCall& call, AwayClient& client, const http2::HeaderList& fields, bool end_stream,
                     base::TimePoint started) {
  Item& item = Begin(ItemKind::kStart, http2::MirrorSender::BytesMax(fields));
  item.to = Half::kAway;
  item.call = &call;
  item.client = &client;
  item.end_stream = end_stream;
  item.number = static_cast<uint64_t>(started.time_since_epoch().count());
  current_->Finish(item, mirror_.Write(fields, item.payload()));
}

void CallLane::Headers(Half to, MovedCall& call, const http2::HeaderList& fields, bool end_stream) {
  Item& item = Begin(ItemKind::kHeaders, http2::MirrorSender::BytesMax(fields));
  item.to = to;
  item.call = &call;
  item.end_stream = end_stream;
  current_->Finish(item, mirror_.Write(fields, item.payload()));
}

void CallLane::Data(Half to, MovedCall& call, const Slice& bytes, bool end_stream) {
  const size_t size = bytes.size();
  const bool copied = size < base::BufferChain::kCopyBelow;
  const size_t payload = copied ? size : sizeof(Slice);
  Item& item = Begin(ItemKind::kData, payload);
  item.to = to;
  item.call = &call;
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

void CallLane::Reset(Half to, MovedCall& call, http2::ErrorCode code, http2::ResetCause cause) {
  Item& item = Begin(ItemKind::kReset, 0);
  item.to = to;
  item.call = &call;
  item.cause = cause;
  item.number = static_cast<uint64_t>(code);
  current_->Finish(item, 0);
}

void CallLane::Number(ItemKind kind, MovedCall& call, uint64_t number) {
  Item& item = Begin(kind, 0);
  item.to = kind == ItemKind::kSent ? Half::kAway : Half::kHome;
  item.call = &call;
  item.number = number;
  current_->Finish(item, 0);
}

void CallLane::Client(ItemKind kind, AwayClient& client) {
  Item& item = Begin(kind, 0);
  item.to = kind == ItemKind::kClientGone ? Half::kAway : Half::kHome;
  item.client = &client;
  current_->Finish(item, 0);
}

}  // namespace sluice::proxy
