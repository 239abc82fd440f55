// DynamicTable: the FIFO of RFC 7541 2.3.2 over interned fields. Owned by an encoder or a decoder; not
// thread-safe.
//
// bytes_max bounds everything: an entry counts 32 bytes or more, so 4096 bytes hold at most 128 entries and a
// ring of 1 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "http2/fields/header.h"

namespace sluice::http2 {

class DynamicTable {
 public:
  DynamicTable(InternTable& interns, size_t bytes_max);
  ~DynamicTable();
  DynamicTable(const DynamicTable&) = delete;
  DynamicTable& operator=(const DynamicTable&) = delete;

  // Adds at the front, evicting from the back (RFC 7541 4.4); a field larger than the table empties it. Takes
  // over one reference of the caller.
  void Insert(const Field* field);
  // Entry `index`, 0 the newest; null beyond the end.
  const Field* At(size_t index) const {
    return index < count_ ? ring_[(inserted_ - index) & (ring_.size() - 1)] : nullptr;
  }
  // Evicts what no longer fits.
  void SetBytesMax(size_t bytes_max);

  size_t count() const { return count_; }
  size_t bytes() const { return bytes_; }
  size_t bytes_max() const { return bytes_max_; }
  // Entries ever inserted (one too large for the table is not). The one that was inserted as number s
  // (counting from 1) has index inserted() - s, and is still there if that is below count().
  uint64_t inserted() const { return inserted_; }
  // Grows with every change: equal versions mean equal tables.
  uint64_t version() const { return version_; }

 private:
  void EvictTo(size_t bytes);
  void Grow();

  InternTable& interns_;
  std::vector<const Field*> ring_;  // power of two; entry s at s & (size - 1)
  size_t count_ = 0;
  size_t bytes_ = 0;
  size_t bytes_max_;
  uint64_t inserted_ = 0;
  uint64_t version_ = 1;
};

}  // namespace sluice::http2
