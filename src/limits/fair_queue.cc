#include "limits/fair_queue.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::limits {

FairQueue::FairQueue() = default;
FairQueue::~FairQueue() = default;

FairQueue::Node* FairQueue::Front() {
  if (size_ == 0) return nullptr;
  Turn& round = this_round_.empty() ? next_round_ : this_round_;
  return round.front()->waiters.front();
}

void FairQueue::Pop(Node& front) {
  // Not before the next waiter is served: a flow may still join the round that has no flow left.
  if (this_round_.empty()) EndRound();
  Flow& flow = *front.flow_;
  SLUICE_DCHECK(&flow == this_round_.front() && &front == flow.waiters.front());
  Unlink(front);
  flow.served_round = round_;
  if (flow.length == 0) return Empty(flow);
  flow.base::ListNode<ByTurn>::Unlink();
  next_round_.PushBack(flow);
}

void FairQueue::Remove(Node& node) {
  Flow& flow = *node.flow_;
  Unlink(node);
  if (flow.length == 0) Empty(flow);
}

FairQueue::Admission FairQueue::Admit(Node& newcomer, size_t size_max) {
  Admission admission;
  if (size_ >= size_max) {
    const auto found = flows_.find(newcomer.key_);
    const size_t length = found == flows_.end() ? 0 : found->second->length;
    if (length + 1 >= longest_) return {};
    admission.displaced = by_length_[longest_].front()->waiters.back();
    Remove(*admission.displaced);
  }
  Flow& flow = FindOrAdd(newcomer.key_);
  flow.waiters.PushBack(newcomer);
  newcomer.flow_ = &flow;
  SetLength(flow, flow.length + 1);
  ++size_;
  admission.admitted = true;
  return admission;
}

size_t FairQueue::Ahead(const Node& last) const {
  const size_t waiting_flows = flows_.size() - idle_count_;
  return std::min(size_, last.flow_->length * waiting_flows) - 1;
}

FairQueue::Flow& FairQueue::FindOrAdd(uint64_t key) {
  std::unique_ptr<Flow>& entry = flows_[key];
  if (entry != nullptr) {
    if (entry->length == 0) {  // idle, hence served in this round
      entry->base::ListNode<ByTurn>::Unlink();
      --idle_count_;
      next_round_.PushBack(*entry);
    }
    return *entry;
  }
  if (stock_.empty()) {
    entry = std::make_unique<Flow>();
  } else {
    entry = std::move(stock_.back());
    stock_.pop_back();
  }
  entry->key = key;
  entry->served_round = 0;
  (idle_overflow_ ? next_round_ : this_round_).PushBack(*entry);
  return *entry;
}

void FairQueue::SetLength(Flow& flow, size_t length) {
  flow.base::ListNode<ByLength>::Unlink();
  flow.length = length;
  while (by_length_.size() <= length) by_length_.emplace_back();
  if (length > 0) by_length_[length].PushBack(flow);
  // Lengths change by one: the longest length stays, or is now one less.
  if (length > longest_) {
    longest_ = length;
  } else if (longest_ > 0 && by_length_[longest_].empty()) {
    --longest_;
  }
}

void FairQueue::Unlink(Node& node) {
  Flow& flow = *std::exchange(node.flow_, nullptr);
  node.base::ListNode<Node>::Unlink();
  SetLength(flow, flow.length - 1);
  --size_;
}

void FairQueue::Empty(Flow& flow) {
  if (size_ == 0) {  // no waiters: no round, no memory
    Forget(flow);
    return EndRound();
  }
  if (flow.served_round != round_) return Forget(flow);
  if (idle_count_ == kIdleMax) {
    idle_overflow_ = true;
    return Forget(flow);
  }
  flow.base::ListNode<ByTurn>::Unlink();
  idle_.PushBack(flow);
  ++idle_count_;
}

void FairQueue::Forget(Flow& flow) {
  flow.base::ListNode<ByTurn>::Unlink();
  const auto found = flows_.find(flow.key);
  std::unique_ptr<Flow> entry = std::move(found->second);
  flows_.erase(found);
  if (stock_.size() < kIdleMax) stock_.push_back(std::move(entry));
}

void FairQueue::EndRound() {
  while (Flow* flow = idle_.front()) Forget(*flow);
  idle_count_ = 0;
  idle_overflow_ = false;
  ++round_;
  this_round_.Splice(next_round_);
}

}  // namespace sluice::limits
