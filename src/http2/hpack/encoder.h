// HPACK encoder (RFC 7541): HeaderList in, header block bytes out. One per direction of a connection.
//
// It mirrors the sender's choice: a field that came from a table goes to our table, a literal stays a literal, a
// never-indexed one stays never indexed. An interned field is found in the table by its id through a small direct-mapped
// memo: no hashing and no comparing on the path of a repeated block.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/buffer_chain.h"
#include "http2/header.h"
#include "http2/hpack/dynamic_table.h"

namespace sluice::http2 {

class HpackEncoder {
 public:
  explicit HpackEncoder(InternTable& interns);

  // The peer's SETTINGS_HEADER_TABLE_SIZE: the next block starts with a size update where one is due (RFC 7541 4.2).
  // We use at most table_bytes_cap (4096) of what is offered.
  void SetPeerTableBytesMax(size_t bytes);

  // An upper bound of the bytes Encode writes for `fields`.
  size_t BytesMax(const HeaderList& fields) const;
  // Writes the block to `out`, which has room for BytesMax(fields). Returns the bytes written. Once encoded, the block
  // must be sent, and in this order: the peer's table depends on it.
  size_t Encode(const HeaderList& fields, uint8_t* out);

  size_t table_bytes() const { return table_.bytes(); }

 private:
  struct Memo {
    uint64_t id = 0;
    uint64_t sequence = 0;  // DynamicTable::inserted() when it went in: tells its index now, or that it has left
  };
  static constexpr size_t kMemos = 64;

  InternTable& interns_;
  DynamicTable table_;
  std::array<Memo, kMemos> memos_{};
  size_t update_low_ = SIZE_MAX;  // smallest size since the last block, where an update is due (RFC 7541 4.2)
  bool update_due_ = false;
};

}  // namespace sluice::http2
