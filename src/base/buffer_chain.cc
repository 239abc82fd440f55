#include "base/buffer_chain.h"

#include <algorithm>

namespace sluice::base {

void BufferChain::NewTail(size_t bytes) {
  if (tail_ != nullptr) tail_->Unref();
  tail_ = Block::New(std::max(bytes, kTailBytes - sizeof(Block)));
  tail_used_ = 0;
}

void BufferChain::Push(Slice slice) {
  if (head_ == slices_.size() && head_ != 0) {
    slices_.clear();
    head_ = 0;
  }
  slices_.push_back(std::move(slice));
}

void BufferChain::Commit(size_t bytes) {
  if (bytes == 0) return;
  const uint8_t* start = tail_->data() + tail_used_;
  tail_used_ += bytes;
  size_ += bytes;
  if (head_ < slices_.size()) {
    Slice& last = slices_.back();
    // Bytes that follow the last slice in the same block make it longer. The address alone decides: blocks do not touch,
    // because each starts with its header.
    if (last.data() + last.size() == start) {
      last.Extend(bytes);
      return;
    }
  }
  Push(Slice(tail_, start, bytes));
}

void BufferChain::Append(const void* data, size_t bytes) {
  const uint8_t* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    size_t chunk = std::min(bytes, kTailBytes / 2);
    std::memcpy(Reserve(chunk), from, chunk);
    Commit(chunk);
    from += chunk;
    bytes -= chunk;
  }
}

void BufferChain::Append(Slice slice) {
  if (slice.size() < kCopyBelow) {
    Append(slice.data(), slice.size());
    return;
  }
  size_ += slice.size();
  Push(std::move(slice));
}

size_t BufferChain::Gather(iovec* iov, size_t count, size_t max_bytes) const {
  size_t filled = 0;
  for (size_t i = head_; i < slices_.size() && filled < count && max_bytes > 0; ++i) {
    size_t length = std::min(slices_[i].size(), max_bytes);
    iov[filled++] = {const_cast<uint8_t*>(slices_[i].data()), length};
    max_bytes -= length;
  }
  return filled;
}

void BufferChain::Consume(size_t bytes) {
  SLUICE_CHECK(bytes <= size_);
  size_ -= bytes;
  while (bytes > 0) {
    Slice& front = slices_[head_];
    if (front.size() > bytes) {
      front.RemovePrefix(bytes);
      return;
    }
    bytes -= front.size();
    slices_[head_++] = Slice();
  }
  if (head_ == slices_.size()) {
    slices_.clear();
    head_ = 0;
    // Everything was written: start the tail over when nobody else holds it.
    if (tail_ != nullptr && tail_->Unique()) tail_used_ = 0;
  } else if (head_ > 64 && head_ * 2 > slices_.size()) {
    slices_.erase(slices_.begin(), slices_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
}

void BufferChain::Splice(BufferChain& other) {
  for (size_t i = other.head_; i < other.slices_.size(); ++i) Append(std::move(other.slices_[i]));
  other.Clear();
}

Slice BufferChain::TakeFront(size_t max_bytes) {
  if (size_ == 0 || max_bytes == 0) return Slice();
  Slice& front = slices_[head_];
  Slice taken = front.Sub(0, std::min(max_bytes, front.size()));
  Consume(taken.size());
  return taken;
}

void BufferChain::Clear() {
  slices_.clear();
  head_ = 0;
  size_ = 0;
  if (tail_ != nullptr) tail_->Unref();
  tail_ = nullptr;
  tail_used_ = 0;
}

std::string BufferChain::ToString() const {
  std::string out;
  out.reserve(size_);
  for (size_t i = head_; i < slices_.size(); ++i) out.append(slices_[i].view());
  return out;
}

}  // namespace sluice::base
