// HPACK decoder (RFC 7541): header block bytes in, HeaderList out. One per direction of a connection.
//
// A field that is in a table costs a bounds check, a count and a pointer. A literal costs one copy: to the
// list's arena, or, if it is to be indexed, to the intern table. Huffman code is decoded in place there.
//
// A gRPC peer's blocks begin with the same bytes again and again: indexes, then literals that are the same for all
// calls. What two blocks had in common is remembered with the FieldRun that it stands for, as long as the table does
// not change: equal bytes after an equal table mean equal fields. It then costs a comparison.
//
// Thread safety: none; lives on the worker of its InternTable.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "http2/fields/header.h"
#include "http2/hpack/dynamic_table.h"

namespace sluice::http2 {

struct DecodeLimits {
  // Sum of hpack_size() above which fields are decoded (the table must stay in step) but no longer stored.
  size_t header_list_bytes_max = 64 * 1024;
  size_t header_count_max = 256;
};

enum class DecodeResult : uint8_t {
  kOk,
  kTooLarge,  // above DecodeLimits; the table is in step, the list holds what fitted: a stream error or 431,
              // not the connection's
  kError,     // COMPRESSION_ERROR: the connection must end (RFC 9113 4.3)
};

class HpackDecoder {
 public:
  // table_bytes_max: our SETTINGS_HEADER_TABLE_SIZE. The table starts at 4096, the protocol's initial value,
  // or less if that is less: the peer must send a size update to use more (RFC 7541 4.2).
  HpackDecoder(InternTable& interns, size_t table_bytes_max = 4096);
  ~HpackDecoder();
  HpackDecoder(const HpackDecoder&) = delete;
  HpackDecoder& operator=(const HpackDecoder&) = delete;

  // Decodes one whole header block (after CONTINUATIONs are joined) into `out`, appending; what `out` holds
  // already counts. `out` was made with the same InternTable. After kError the decoder is of no more use.
  DecodeResult Decode(std::string_view block, const DecodeLimits& limits, HeaderList& out);

  // Our SETTINGS_HEADER_TABLE_SIZE changed and was acknowledged: larger updates are an error from now on; if
  // it is below the maximum that the peer uses, the next block must start with an update to that or less (RFC
  // 7541 4.2).
  void SetTableBytesMax(size_t bytes);
  size_t table_bytes() const { return table_.bytes(); }
  // Table size updates of the last block: it may have begun with any number, and each may have emptied the table.
  uint32_t size_updates() const { return size_updates_; }
  // Fields of the last block that were decoded but not stored: what an index of one byte may make many of.
  uint32_t dropped() const { return dropped_; }
  // What they count (Field::hpack_size), together.
  uint64_t dropped_bytes() const { return dropped_bytes_; }

 private:
  struct Literal;
  struct RunMemo;
  static constexpr size_t kRunMemos = 8;

  // If the front of the block is known: appends its run to `out`, which is empty, and moves p behind it. Else returns
  // what could be learned of the block, or null.
  RunMemo* TakeRun(const uint8_t*& p, const uint8_t* end, HeaderList& out);
  bool DecodeFields(const uint8_t*& p, const uint8_t* end, HeaderList& out);
  bool DecodeAndLearn(RunMemo& memo, const uint8_t*& p, const uint8_t* end, HeaderList& out);
  bool ReadSizeUpdates(const uint8_t*& p, const uint8_t* end);
  // Entry `index` of both tables (RFC 7541 2.3.3); null for 0 and beyond the end.
  const Field* At(size_t index) const;
  // The four decoders of RFC 7541 6.1 and 6.2. They move p, append to `out` while the list is not too large,
  // and return false on an error.
  bool DecodeIndexed(const uint8_t*& p, const uint8_t* end, HeaderList& out);
  bool DecodeLiteral(const uint8_t*& p, const uint8_t* end, HeaderList& out);
  bool AddToTable(const Literal& literal, HeaderList& out);
  bool AddToList(const Literal& literal, Indexing indexing, HeaderList& out);
  // Whether a field of this size may be stored; the first that may not makes the rest of the block be
  // dropped.
  bool Fits(size_t hpack_size, const HeaderList& out);

  InternTable& interns_;
  DynamicTable table_;
  size_t table_bytes_max_;
  uint32_t size_updates_ = 0;
  uint32_t dropped_ = 0;
  uint64_t dropped_bytes_ = 0;
  size_t update_due_max_ = SIZE_MAX;  // below SIZE_MAX: an update is due, to this or less
  DecodeLimits limits_;               // of the block at hand
  bool too_large_ = false;
  std::unique_ptr<std::array<RunMemo, kRunMemos>> memos_;  // made for the second block
  uint32_t next_memo_ = 0;                                 // to be replaced
  bool decoded_before_ = false;
};

}  // namespace sluice::http2
