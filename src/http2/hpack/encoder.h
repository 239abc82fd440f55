// HPACK encoder (RFC 7541): HeaderList in, header block bytes out. One per direction of a connection.
//
// It mirrors the sender's choice (RFC 7541 6.2): a field that came from a table goes to our table, a literal
// stays a literal, a never-indexed one stays never indexed. What the static table has is sent as its index.
// An interned field is found in the table by its id through a small direct-mapped memo: no hashing and no
// comparing on the path of a repeated block. What was written for a FieldRun is written again as long as the table does
// not change.
//
// Thread safety: none; lives on the worker of its InternTable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "http2/fields/header.h"
#include "http2/hpack/dynamic_table.h"
#include "http2/hpack/integer.h"

namespace sluice::http2 {

class HpackEncoder {
 public:
  explicit HpackEncoder(InternTable& interns);

  // The peer's SETTINGS_HEADER_TABLE_SIZE: the next block starts with a size update where one is due (RFC
  // 7541 4.2). We use at most kTableBytesCap of what is offered.
  void SetPeerTableBytesMax(size_t bytes);

  // From now on :scheme is `scheme`, a static field, whatever the lists have. Before the first Encode.
  void SetScheme(const Field* scheme) { scheme_ = scheme; }

  // An upper bound of the bytes Encode writes for `fields`: what the 32 bytes a field counts extra are enough
  // for, and two size updates.
  size_t BytesMax(const HeaderList& fields) const { return fields.hpack_size() + 2 * kIntegerBytesMax; }
  // Writes the block to `out`, which has room for BytesMax(fields). Returns the bytes written. Once encoded,
  // the block must be sent, and in this order: the peer's table depends on it.
  size_t Encode(const HeaderList& fields, uint8_t* out);

  size_t table_bytes() const { return table_.bytes(); }

  // Also the protocol's initial value. More would cost memory a connection, and gRPC's repeated fields fit.
  static constexpr size_t kTableBytesCap = 4096;

 private:
  // Twice the entries a full table can hold. Ids are consecutive, so the fields of one connection rarely
  // share a memo.
  static constexpr size_t kMemos = 256;

  // What a run was spelled as.
  struct RunMemo {
    static constexpr size_t kBytesMax = 112;
    uint64_t run = 0;      // its id; 0: none
    uint64_t version = 0;  // of the table
    size_t size = 0;
    std::array<uint8_t, kBytesMax> bytes;
  };
  static constexpr size_t kRunMemos = 8;

  uint8_t* WriteSizeUpdates(uint8_t* p);
  uint8_t* EncodeRun(const FieldRun& run, uint8_t* p);
  const Field* Outgoing(const Field* field) const {
    return field->token == Token::kScheme && scheme_ != nullptr ? scheme_ : field;
  }
  uint8_t* EncodeField(const Field* field, uint8_t* p);
  uint8_t* EncodeIndexing(const Field* field, uint8_t* p);
  uint8_t* EncodeTransient(const Field* field, uint8_t* p);
  uint8_t* AddToTable(const Field* field, uint8_t* p);
  bool Worthwhile(const Field* field) const;
  // The field's index in the dynamic table, from 0; count() or more if it is not there.
  size_t IndexOf(const Field* field);
  size_t SearchIndex(const Field* field);

  InternTable& interns_;
  const Field* scheme_ = nullptr;  // null: as the lists have it
  DynamicTable table_;
  // By the low bits of Field::id: the low bits of DynamicTable::inserted() when the field went in. Only a
  // hint, proved by looking at the entry it leads to.
  std::array<uint32_t, kMemos> memos_{};
  std::unique_ptr<std::array<RunMemo, kRunMemos>>
      run_memos_;                 // by the low bits of the run's id; made when there is a run
  size_t update_low_ = SIZE_MAX;  // smallest size since the last block, where an update is due (RFC 7541 4.2)
  bool update_due_ = false;
};

}  // namespace sluice::http2
