#include "base/buffer_chain.h"

#include <algorithm>
#include <cstring>

namespace sluice::base {
namespace {

constexpr size_t kCrumb = 64;
// Capacity of slices_ that a drained chain keeps: 1.5 KiB.
constexpr size_t kSlicesKept = 64;

}  // namespace

void BufferChain::NewTail(size_t bytes) {
  tail_used_ = 0;
  if (tail_ != nullptr) {
    // No slice of it is left, neither here nor with a consumer: write it from the start again.
    if (tail_->Unique() && tail_->capacity() >= bytes) return;
    tail_->Unref();
  }
  tail_ = Block::New(std::max(bytes, kTailBytes));
}

void BufferChain::Push(Slice slice) {
  if (head_ == slices_.size() && head_ != 0) {
    slices_.clear();
    head_ = 0;
  }
  slices_.push_back(std::move(slice));
}

void BufferChain::Append(const void* data, size_t bytes) {
  const uint8_t* from = static_cast<const uint8_t*>(data);
  while (bytes > 0) {
    // Fills the tail up, unless that would leave a crumb there that costs an iovec of its own.
    size_t room = TailRoom() >= kCrumb ? TailRoom() : kTailBytes;
    size_t chunk = std::min(bytes, room);
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
    if (slices_.capacity() > kSlicesKept) slices_.shrink_to_fit();
    head_ = 0;
    // Everything was written. The tail goes back to the free list; keeping it would cost every idle connection a block.
    if (tail_ != nullptr) tail_->Unref();
    tail_ = nullptr;
    tail_used_ = 0;
  } else if (head_ > 64 && head_ * 2 > slices_.size()) {
    slices_.erase(slices_.begin(), slices_.begin() + static_cast<ptrdiff_t>(head_));
    head_ = 0;
  }
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
