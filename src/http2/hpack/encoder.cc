#include "http2/hpack/encoder.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "http2/fields/static_table.h"
#include "http2/hpack/huffman.h"

namespace sluice::http2 {
namespace {

// First bytes of the representations, RFC 7541 6.
constexpr uint8_t kIndexedFlag = 0x80;          // 7 bits of index follow
constexpr uint8_t kIncrementalFlag = 0x40;      // 6
constexpr uint8_t kSizeUpdateFlag = 0x20;       // 5
constexpr uint8_t kNeverIndexedFlag = 0x10;     // 4
constexpr uint8_t kWithoutIndexingFlag = 0x00;  // 4
constexpr uint8_t kHuffmanFlag = 0x80;

uint8_t* WritePlain(std::string_view text, uint8_t* p) {
  p = WriteInteger(p, 0, 7, text.size());
  if (!text.empty()) std::memcpy(p, text.data(), text.size());
  return p + text.size();
}

// Huffman code unless it is longer: for what is sent once and then by index.
uint8_t* WriteShortest(std::string_view text, uint8_t* p) {
  const size_t size = HuffmanSize(text);
  if (size > text.size()) return WritePlain(text, p);
  return HuffmanEncode(text, WriteInteger(p, kHuffmanFlag, 7, size));
}

// For what is sent each time anew: plain bytes, which cost neither side a look-up a character.
uint8_t* WriteLiteral(const Field* field, uint8_t flag, uint8_t* p) {
  p = WriteInteger(p, flag, 4, field->static_name_index);
  if (field->static_name_index == 0) p = WritePlain(field->name(), p);
  return WritePlain(field->value(), p);
}

}  // namespace

HpackEncoder::HpackEncoder(InternTable& interns) : interns_(interns), table_(interns, kTableBytesCap) {}

void HpackEncoder::SetPeerTableBytesMax(size_t bytes) {
  bytes = std::min(bytes, kTableBytesCap);
  if (bytes == table_.bytes_max()) return;
  table_.SetBytesMax(bytes);
  update_low_ = std::min(update_low_, bytes);
  update_due_ = true;
}

// RFC 7541 4.2: the smallest size since the last block, then the one that holds.
uint8_t* HpackEncoder::WriteSizeUpdates(uint8_t* p) {
  if (update_low_ < table_.bytes_max()) p = WriteInteger(p, kSizeUpdateFlag, 5, update_low_);
  p = WriteInteger(p, kSizeUpdateFlag, 5, table_.bytes_max());
  update_low_ = SIZE_MAX;
  update_due_ = false;
  return p;
}

size_t HpackEncoder::Encode(const HeaderList& fields, uint8_t* out) {
  uint8_t* p = out;
  if (update_due_) p = WriteSizeUpdates(p);
  const FieldRun* run = fields.run();
  if (run != nullptr) p = EncodeRun(*run, p);
  for (size_t i = run != nullptr ? run->count : 0; i < fields.size(); ++i) p = EncodeField(Outgoing(&fields[i]), p);
  SLUICE_DCHECK(static_cast<size_t>(p - out) <= BytesMax(fields));
  return static_cast<size_t>(p - out);
}

inline uint8_t* HpackEncoder::EncodeField(const Field* field, uint8_t* p) {
  // Before all else: no index may tell its value (RFC 7541 7.1.3)
  if (field->indexing == Indexing::kNever) return WriteLiteral(field, kNeverIndexedFlag, p);
  if (field->static_index != 0) {
    *p++ = static_cast<uint8_t>(kIndexedFlag | field->static_index);
    return p;
  }
  if (field->indexing == Indexing::kIndexed) return EncodeIndexing(field, p);
  return WriteLiteral(field, kWithoutIndexingFlag, p);
}

uint8_t* HpackEncoder::EncodeRun(const FieldRun& run, uint8_t* p) {
  if (run_memos_ == nullptr) run_memos_ = std::make_unique<std::array<RunMemo, kRunMemos>>();
  RunMemo& memo = (*run_memos_)[run.id % kRunMemos];
  if (memo.run == run.id && memo.version == table_.version()) {
    std::memcpy(p, memo.bytes.data(), memo.size);
    return p + memo.size;
  }
  const uint64_t version = table_.version();
  uint8_t* const begin = p;
  for (uint32_t i = 0; i < run.count; ++i) p = EncodeField(Outgoing(run.fields()[i]), p);
  const size_t size = static_cast<size_t>(p - begin);
  if (size <= RunMemo::kBytesMax && table_.version() == version) {
    memo.run = run.id;
    memo.version = version;
    memo.size = size;
    std::memcpy(memo.bytes.data(), begin, size);
  }
  return p;
}

inline size_t HpackEncoder::IndexOf(const Field* field) {
  const size_t hint = static_cast<uint32_t>(table_.inserted()) - memos_[field->id % kMemos];
  return table_.At(hint) == field ? hint : SearchIndex(field);
}

// Another field has the memo, or this one is not in the table. At most 128 pointers to look at.
size_t HpackEncoder::SearchIndex(const Field* field) {
  size_t index = 0;
  while (index < table_.count() && table_.At(index) != field) ++index;
  if (index < table_.count()) memos_[field->id % kMemos] = static_cast<uint32_t>(table_.inserted() - index);
  return index;
}

uint8_t* HpackEncoder::EncodeIndexing(const Field* field, uint8_t* p) {
  if (!field->interned()) return EncodeTransient(field, p);
  const size_t index = IndexOf(field);
  if (index < table_.count()) return WriteInteger(p, kIndexedFlag, 7, kStaticCount + 1 + index);
  if (!Worthwhile(field)) return WriteLiteral(field, kWithoutIndexingFlag, p);
  InternTable::Ref(field);
  return AddToTable(field, p);
}

// A field of the proxy, or of another worker's list: it gets its identity on this worker here.
uint8_t* HpackEncoder::EncodeTransient(const Field* field, uint8_t* p) {
  if (!Worthwhile(field)) return WriteLiteral(field, kWithoutIndexingFlag, p);
  const Field* known = interns_.Intern(field->name(), field->value());
  const size_t index = IndexOf(known);
  if (index == table_.count()) return AddToTable(known, p);
  interns_.Unref(known);
  return WriteInteger(p, kIndexedFlag, 7, kStaticCount + 1 + index);
}

// RFC 7541 6.2.1. Takes over a reference.
uint8_t* HpackEncoder::AddToTable(const Field* field, uint8_t* p) {
  p = WriteInteger(p, kIncrementalFlag, 6, field->static_name_index);
  if (field->static_name_index == 0) p = WriteShortest(field->name(), p);
  p = WriteShortest(field->value(), p);
  table_.Insert(field);
  memos_[field->id % kMemos] = static_cast<uint32_t>(table_.inserted());
  return p;
}

// A field that would push out nearly all others is not worth its place.
bool HpackEncoder::Worthwhile(const Field* field) const { return field->hpack_size() * 4 <= table_.bytes_max() * 3; }

}  // namespace sluice::http2
