#include "http2/session/stream.h"

#include <utility>

#include "base/memory_budget.h"

namespace sluice::http2 {
namespace {
constexpr size_t kKept = 4096;        // half a MiB, where none of them has a backlog
thread_local bool list_alive = true;  // trivially destructible: still readable after the list is gone
}  // namespace

struct StreamFreeList {
  Stream* head = nullptr;
  size_t count = 0;
  base::MemoryBudget::Share held;  // taken from the heap, this list included
  void Trim() {
    held.Count(-static_cast<int64_t>(std::exchange(count, 0) * sizeof(Stream)));
    while (head != nullptr) {
      Stream* next = StreamPool::NextFree(head);
      StreamPool::Delete(head);
      head = next;
    }
    held.Flush();
  }
  ~StreamFreeList() {
    list_alive = false;
    Trim();
  }
};
namespace {
thread_local StreamFreeList free_list;

// From the heap, or back to it. Apart, so that the usual way stays short.
[[gnu::cold, gnu::noinline]] void CountStream(int64_t bytes) {
  if (list_alive) {
    free_list.held.Count(bytes);
  } else {
    base::MemoryBudget::Add(bytes);
  }
}
}  // namespace

// Not inlined into coroutines: both read thread-locals (docs/scheduler.md, "Thread-locals").
__attribute__((noinline)) Stream* StreamPool::New() {
  if (!list_alive || free_list.head == nullptr) {
    CountStream(sizeof(Stream));
    return new Stream();
  }
  Stream* stream = free_list.head;
  free_list.head = stream->next_free_;
  --free_list.count;
  stream->next_free_ = nullptr;
  return stream;
}

__attribute__((noinline)) void StreamPool::Free(Stream* stream) {
  stream->OwnedNode::Unlink();
  stream->DropBacklog();
  if (!list_alive || free_list.count == kKept) {
    CountStream(-static_cast<int64_t>(sizeof(Stream)));
    delete stream;
    return;
  }
  stream->session_ = nullptr;
  stream->events_ = nullptr;
  stream->next_free_ = free_list.head;
  free_list.head = stream;
  ++free_list.count;
}

__attribute__((noinline)) void StreamPool::TrimSpares() {
  if (list_alive) free_list.Trim();
}

StreamState Stream::state() const {
  if (closed_) return StreamState::kClosed;
  if (received_end_) return StreamState::kHalfClosedRemote;
  return sent_end_ ? StreamState::kHalfClosedLocal : StreamState::kOpen;
}

StreamBacklog& Stream::backlog() {
  if (backlog_ == nullptr) backlog_.reset(new StreamBacklog(*this));
  return *backlog_;
}

// Nothing more is sent of it.
void Stream::DropBacklog() {
  if (backlog_ == nullptr) return;
  backlog_->Unlink();
  backlog_->queue.Clear();
  backlog_->trailers.reset();
}

}  // namespace sluice::http2
