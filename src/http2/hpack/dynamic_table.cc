#include "http2/hpack/dynamic_table.h"

namespace sluice::http2 {

DynamicTable::DynamicTable(InternTable& interns, size_t bytes_max) : interns_(interns), bytes_max_(bytes_max) {}

DynamicTable::~DynamicTable() { EvictTo(0); }

void DynamicTable::Insert(const Field* field) {
  ++version_;
  const size_t size = field->hpack_size();
  if (size > bytes_max_) {  // RFC 7541 4.4: not an error, and the table is empty then
    EvictTo(0);
    interns_.Unref(field);
    return;
  }
  EvictTo(bytes_max_ - size);
  if (count_ == ring_.size()) Grow();
  ring_[++inserted_ & (ring_.size() - 1)] = field;
  ++count_;
  bytes_ += size;
}

void DynamicTable::SetBytesMax(size_t bytes_max) {
  ++version_;
  bytes_max_ = bytes_max;
  EvictTo(bytes_max);
}

void DynamicTable::EvictTo(size_t bytes) {
  while (bytes_ > bytes) {
    const Field* oldest = At(count_ - 1);
    bytes_ -= oldest->hpack_size();
    --count_;
    interns_.Unref(oldest);
  }
}

void DynamicTable::Grow() {
  std::vector<const Field*> ring(ring_.empty() ? 16 : ring_.size() * 2);
  for (size_t i = 0; i < count_; ++i) ring[(inserted_ - i) & (ring.size() - 1)] = At(i);
  ring_.swap(ring);
}

}  // namespace sluice::http2
