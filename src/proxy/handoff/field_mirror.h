// FieldMirror: how header lists go from one worker to another. Interned fields and their counts belong to one worker,
// so a list goes as flat bytes, and a field that was sent before goes as two of them.
//
//   sender (worker A)                             receiver (worker B)
//   sent_[slot] = id of A's field   --- bytes --> known_[slot] = B's own field, equal in name and value
//
// The two arrays mirror each other as the tables of HPACK do: both see the same lists in the same order, so a slot
// holds the same field on both sides at the same point of the stream of bytes. A field lives in slot id % kSlots; a
// later one takes the place. B's fields are held by the mirror, at most kSlots of at most kMirroredBytesMax bytes.
//
// What is not interned (it changes with each call), or is too large for a slot, goes as its bytes with what is known of
// it.
//
//   count : u32, codes : u16 each, 0..7 bytes to a multiple of 8, then for each code kDefine or kTransient a Field with
//   its bytes, each a multiple of 8. A code below kSlotCodes is a static field's index, else kSlotCodes + slot.
//
// Thread safety: each end belongs to its worker. Bytes lie in memory that both can read; they are trusted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "http2/fields/header.h"

namespace sluice::proxy {

// What is handed over stands at multiples of 8 bytes.
constexpr size_t AlignUp(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

struct MirrorFormat {
  static constexpr size_t kSlots = 256;
  static constexpr size_t kMirroredBytesMax = 512;
  static constexpr uint16_t kSlotCodes = 64, kDefine = 0xfffe, kTransient = 0xffff;
  static_assert(kSlotCodes > http2::kStaticIdMax && kSlotCodes + kSlots < kDefine);
};

class MirrorSender : private MirrorFormat {
 public:
  // An upper bound of what Write writes.
  static size_t BytesMax(const http2::HeaderList& fields) { return 16 + fields.hpack_size() + fields.size() * 10; }
  // Writes to `out`, aligned to 8. Returns the bytes written, a multiple of 8. They must be read, in this order.
  size_t Write(const http2::HeaderList& fields, uint8_t* out);

 private:
  std::array<uint64_t, kSlots> sent_{};  // ids; 0: nothing was sent in this slot
};

class MirrorReceiver : private MirrorFormat {
 public:
  explicit MirrorReceiver(http2::InternTable& interns) : interns_(interns) {}
  ~MirrorReceiver();
  MirrorReceiver(const MirrorReceiver&) = delete;
  MirrorReceiver& operator=(const MirrorReceiver&) = delete;

  // What Write wrote. Interned fields are this worker's.
  http2::HeaderList Read(const uint8_t* in);

 private:
  http2::InternTable& interns_;
  std::array<const http2::Field*, kSlots> known_{};  // one reference each
};

}  // namespace sluice::proxy
