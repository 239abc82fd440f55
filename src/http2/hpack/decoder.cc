#include "http2/hpack/decoder.h"

#include <algorithm>
#include <cstring>

#include "http2/fields/static_table.h"
#include "http2/hpack/huffman.h"
#include "http2/hpack/integer.h"

namespace sluice::http2 {
namespace {

constexpr size_t kProtocolTableBytes = 4096;  // RFC 9113 6.5.2: until the peer says otherwise by an update

// A string literal as it stands in the block (RFC 7541 5.2).
struct RawString {
  const uint8_t* data = nullptr;
  uint32_t size = 0;
  bool huffman = false;

  size_t decoded_max() const { return huffman ? HuffmanDecodedMax(size) : size; }

  // Writes the string to `out`; returns its end, null on an error.
  char* Decode(char* out) const {
    if (huffman) return HuffmanDecode(data, size, out);
    if (size != 0) std::memcpy(out, data, size);
    return out + size;
  }
  std::string_view plain() const { return {reinterpret_cast<const char*>(data), size}; }
};

bool ReadString(const uint8_t*& p, const uint8_t* end, RawString& string) {
  if (p == end) return false;
  string.huffman = (*p & 0x80) != 0;
  if (!ReadInteger(p, end, 7, string.size) || string.size > static_cast<size_t>(end - p)) return false;
  string.data = p;
  p += string.size;
  return true;
}

// Memory for the decoded strings of one field; on the stack, but for unusually long ones.
class Scratch {
 public:
  char* Get(size_t bytes) {
    if (bytes <= sizeof(inline_)) return inline_;
    heap_.reset(new char[bytes]);
    return heap_.get();
  }

 private:
  char inline_[1024];
  std::unique_ptr<char[]> heap_;
};

}  // namespace

// A literal field as it stands in the block. The name comes from a table or is spelled out.
struct HpackDecoder::Literal {
  const Field* name_field = nullptr;
  RawString name, value;
};

// Of blocks that begin with an index (RFC 7541 6.1): by their first four bytes, where requests of one peer have what is
// theirs, as the path.
struct HpackDecoder::RunMemo {
  static constexpr size_t kBytesMax = 112;

  uint32_t key = 0;         // the first four bytes, or all there are; 0: nothing is remembered here
  uint64_t version = 0;     // of the table
  FieldRun* run = nullptr;  // of the first run_bytes bytes. Holds a reference
  uint8_t run_bytes = 0;
  uint8_t common = 0;  // bytes that the block at hand shares with the one before
  uint8_t size = 0;    // of `bytes`: of the last block that was decoded field by field
  std::array<uint8_t, kBytesMax> bytes;
};

HpackDecoder::~HpackDecoder() {
  if (memos_ == nullptr) return;
  for (RunMemo& memo : *memos_) {
    if (memo.run != nullptr) interns_.UnrefRun(memo.run);
  }
}

HpackDecoder::HpackDecoder(InternTable& interns, size_t table_bytes_max)
    : interns_(interns),
      table_(interns, std::min(table_bytes_max, kProtocolTableBytes)),
      table_bytes_max_(table_bytes_max) {}

DecodeResult HpackDecoder::Decode(std::string_view block, const DecodeLimits& limits, HeaderList& out) {
  const uint8_t* p = reinterpret_cast<const uint8_t*>(block.data());
  const uint8_t* const end = p + block.size();
  limits_ = limits;
  too_large_ = false;
  dropped_ = 0;
  dropped_bytes_ = 0;
  if (!ReadSizeUpdates(p, end)) return DecodeResult::kError;
  RunMemo* memo = out.empty() ? TakeRun(p, end, out) : nullptr;
  if (!(memo != nullptr ? DecodeAndLearn(*memo, p, end, out) : DecodeFields(p, end, out))) return DecodeResult::kError;
  return too_large_ ? DecodeResult::kTooLarge : DecodeResult::kOk;
}

// RFC 7541 4.2 and 6.3: updates stand at the start of a block, nowhere else. When we lowered our setting more
// than once, the first update must reach the lowest value, so that no entry survives that should not.
bool HpackDecoder::ReadSizeUpdates(const uint8_t*& p, const uint8_t* end) {
  size_updates_ = 0;
  while (p != end && (*p & 0xe0) == 0x20) {
    uint32_t bytes;
    if (!ReadInteger(p, end, 5, bytes) || bytes > std::min(table_bytes_max_, update_due_max_)) return false;
    update_due_max_ = SIZE_MAX;
    table_.SetBytesMax(bytes);
    ++size_updates_;
  }
  return update_due_max_ == SIZE_MAX;
}

inline HpackDecoder::RunMemo* HpackDecoder::TakeRun(const uint8_t*& p, const uint8_t* end, HeaderList& out) {
  const size_t left = static_cast<size_t>(end - p);
  if (left == 0 || *p <= 0x80) return nullptr;
  if (memos_ == nullptr) {  // a connection that makes one call needs none
    if (!std::exchange(decoded_before_, true)) return nullptr;
    memos_ = std::make_unique<std::array<RunMemo, kRunMemos>>();
  }
  uint32_t key = 0;
  if (left >= sizeof key) {
    std::memcpy(&key, p, sizeof key);
  } else {
    std::memcpy(&key, p, left);
  }
  // Those of one connection are few: what is looked for is among the first.
  size_t place = 0;
  while (place < kRunMemos && (*memos_)[place].key != key && (*memos_)[place].key != 0) ++place;
  if (place == kRunMemos) place = next_memo_++ % kRunMemos;
  RunMemo& memo = (*memos_)[place];
  const bool same_table = memo.key == key && memo.version == table_.version();
  if (same_table && memo.run != nullptr && memo.run_bytes <= left &&
      std::memcmp(memo.bytes.data(), p, memo.run_bytes) == 0) {
    if (memo.run->count > limits_.header_count_max || memo.run->hpack_size > limits_.header_list_bytes_max)
      return nullptr;
    out.AddRun(*memo.run);
    p += memo.run_bytes;
    return nullptr;
  }
  if (memo.run != nullptr) interns_.UnrefRun(std::exchange(memo.run, nullptr));
  const size_t size = std::min(left, RunMemo::kBytesMax);
  const size_t comparable = same_table ? std::min<size_t>(size, memo.size) : 0;
  memo.common = 0;
  while (memo.common < comparable && memo.bytes[memo.common] == p[memo.common]) ++memo.common;
  memo.key = key;
  memo.version = table_.version();
  memo.size = static_cast<uint8_t>(size);
  std::memcpy(memo.bytes.data(), p, size);
  return memo.common > 0 ? &memo : nullptr;
}

inline bool HpackDecoder::DecodeFields(const uint8_t*& p, const uint8_t* end, HeaderList& out) {
  while (p != end) {
    if (!((*p & 0x80) != 0 ? DecodeIndexed(p, end, out) : DecodeLiteral(p, end, out))) return false;
  }
  return true;
}

// Field by field, to find where those end that lie within what is common. They make a run unless one of them changed
// the table.
bool HpackDecoder::DecodeAndLearn(RunMemo& memo, const uint8_t*& p, const uint8_t* end, HeaderList& out) {
  const uint8_t* const begin = p;
  uint8_t ends[FieldRun::kCountMax];
  size_t count = 0;
  while (p != end && count < std::size(ends)) {
    const uint8_t* next = p;
    if (!((*p & 0x80) != 0 ? DecodeIndexed(next, end, out) : DecodeLiteral(next, end, out))) return false;
    p = next;
    if (p - begin > memo.common) break;
    ends[count++] = static_cast<uint8_t>(p - begin);
  }
  if (!DecodeFields(p, end, out)) return false;
  if (table_.version() != memo.version || too_large_ || count == 0) return true;
  memo.run = interns_.MakeRun(out.begin(), count);
  if (memo.run != nullptr) memo.run_bytes = ends[memo.run->count - 1];
  return true;
}

inline const Field* HpackDecoder::At(size_t index) const {
  if (index > kStaticCount) return table_.At(index - kStaticCount - 1);
  return index != 0 ? StaticField(index) : nullptr;
}

inline bool HpackDecoder::Fits(size_t hpack_size, const HeaderList& out) {
  if (too_large_ || out.size() >= limits_.header_count_max ||
      out.hpack_size() + hpack_size > limits_.header_list_bytes_max) {
    too_large_ = true;
    ++dropped_;
    dropped_bytes_ += hpack_size;
  }
  return !too_large_;
}

inline bool HpackDecoder::DecodeIndexed(const uint8_t*& p, const uint8_t* end, HeaderList& out) {
  uint32_t index;
  if (!ReadInteger(p, end, 7, index)) return false;
  const Field* field = At(index);
  if (field == nullptr) return false;
  if (Fits(field->hpack_size(), out)) {
    InternTable::Ref(field);
    out.AddInterned(field);
  }
  return true;
}

bool HpackDecoder::DecodeLiteral(const uint8_t*& p, const uint8_t* end, HeaderList& out) {
  Indexing indexing = Indexing::kIndexed;
  int prefix_bits = 6;
  if ((*p & 0x40) == 0) {
    if ((*p & 0x20) != 0) return false;  // RFC 7541 4.2: a size update behind a field
    indexing = (*p & 0x10) != 0 ? Indexing::kNever : Indexing::kLiteral;
    prefix_bits = 4;
  }
  uint32_t index;
  if (!ReadInteger(p, end, prefix_bits, index)) return false;
  Literal literal;
  if (index != 0) {
    literal.name_field = At(index);
    if (literal.name_field == nullptr) return false;
    const std::string_view name = literal.name_field->name();
    literal.name = {reinterpret_cast<const uint8_t*>(name.data()), static_cast<uint32_t>(name.size()), false};
  } else if (!ReadString(p, end, literal.name)) {
    return false;
  }
  if (!ReadString(p, end, literal.value)) return false;
  return indexing == Indexing::kIndexed ? AddToTable(literal, out) : AddToList(literal, indexing, out);
}

// RFC 7541 6.2.1. Also when the list is too large: the table must stay in step with the peer's.
bool HpackDecoder::AddToTable(const Literal& literal, HeaderList& out) {
  Scratch scratch;
  std::string_view name = literal.name.plain(), value = literal.value.plain();
  const size_t name_max = literal.name.huffman ? literal.name.decoded_max() : 0;
  if (literal.name.huffman || literal.value.huffman) {
    char* const start = scratch.Get(name_max + literal.value.decoded_max());
    char* to = start;
    if (literal.name.huffman) {
      if ((to = literal.name.Decode(start)) == nullptr) return false;
      name = {start, static_cast<size_t>(to - start)};
    }
    if (literal.value.huffman) {
      const char* value_end = literal.value.Decode(to);
      if (value_end == nullptr) return false;
      value = {to, static_cast<size_t>(value_end - to)};
    }
  }
  // The name may belong to an entry that Insert() evicts (RFC 7541 4.4): it has been copied, or is held, by
  // then.
  const Field* field = interns_.Intern(name, value);
  if (Fits(field->hpack_size(), out)) {
    InternTable::Ref(field);
    out.AddInterned(field);
  }
  table_.Insert(field);
  return true;
}

// RFC 7541 6.2.2 and 6.2.3: decoded to where it stays.
bool HpackDecoder::AddToList(const Literal& literal, Indexing indexing, HeaderList& out) {
  Field* field = out.StartField(literal.name.decoded_max() + literal.value.decoded_max());
  char* const name_end = literal.name.Decode(field->bytes());
  if (name_end == nullptr) return false;
  char* const value_end = literal.value.Decode(name_end);
  if (value_end == nullptr) return false;

  NameClass cls;
  if (literal.name_field != nullptr) {
    cls = {literal.name_field->token, static_cast<uint8_t>(literal.name_field->static_name_index)};
  } else {
    cls = ClassifyName({field->bytes(), static_cast<size_t>(name_end - field->bytes())});
  }
  const std::string_view value(name_end, static_cast<size_t>(value_end - name_end));
  *field = Field{.name_size = static_cast<uint32_t>(name_end - field->bytes()),
                 .value_size = static_cast<uint32_t>(value.size()),
                 .refs = 0,
                 .static_name_index = cls.static_name_index,
                 .static_index = StaticIndex(cls.static_name_index, value),
                 .id = 0,
                 .token = cls.token,
                 .indexing = indexing,
                 .checked = false};
  if (Fits(field->hpack_size(), out)) out.FinishField(field);
  return true;
}

void HpackDecoder::SetTableBytesMax(size_t bytes) {
  table_bytes_max_ = bytes;
  // A peer that uses less already has nothing to change, so nothing to say.
  if (bytes < table_.bytes_max()) update_due_max_ = std::min(update_due_max_, bytes);
}

}  // namespace sluice::http2
