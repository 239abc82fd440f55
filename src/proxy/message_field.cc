// Protobuf's wire format (protobuf.dev/programming-guides/encoding), strict where its C++ parser is strict, so that
// what has a key here is a message to the backend too.
#include "proxy/message_field.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "base/hash.h"

namespace sluice::proxy {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kDelimited = 2, kGroup = 3, kGroupEnd = 4, kFixed32 = 5 };

constexpr size_t kTagBytesMax = 5;      // of 32 bits
constexpr size_t kLengthBytesMax = 5;   // below 2 GiB
constexpr size_t kVarintBytesMax = 10;  // of 64 bits

// How a step went. kEnd: the bytes that may be looked at end here.
enum class Step : uint8_t { kOk, kEnd, kMalformed };

// Walks over the pieces. Positions count from the first byte of the first piece.
class Cursor {
 public:
  // `window`: the position where looking ends; not beyond the last piece.
  Cursor(std::span<const base::Slice> pieces, size_t window) : pieces_(pieces), window_(window) {}

  size_t position() const { return base_ + offset_; }

  // One byte below the position `end`, where the message that holds it ends.
  Step Byte(size_t end, uint8_t* out) {
    const size_t at = position();
    if (at >= end) return Step::kMalformed;
    if (at >= window_) return Step::kEnd;
    Settle();
    *out = pieces_[piece_].data()[offset_++];
    return Step::kOk;
  }

  // Bits above the 64th are dropped, as protobuf does.
  Step Varint(size_t end, size_t bytes_max, uint64_t* out) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes_max; ++i) {
      uint8_t byte = 0;
      if (Step step = Byte(end, &byte); step != Step::kOk) return step;
      value |= uint64_t{byte & 0x7fu} << (7 * i);
      if (byte < 0x80) {
        *out = value;
        return Step::kOk;
      }
    }
    return Step::kMalformed;
  }

  Step Fixed(size_t end, size_t size, uint64_t* out) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      uint8_t byte = 0;
      if (Step step = Byte(end, &byte); step != Step::kOk) return step;
      value |= uint64_t{byte} << (8 * i);
    }
    *out = value;
    return Step::kOk;
  }

  Step Length(size_t end, size_t* out) {
    uint64_t value = 0;
    if (Step step = Varint(end, kLengthBytesMax, &value); step != Step::kOk) return step;
    if (value > end - position()) return Step::kMalformed;
    *out = value;
    return Step::kOk;
  }

  // `size` bytes, which end at or below the end of their message.
  Step Skip(size_t size) {
    if (size > window_ - position()) return Step::kEnd;
    while (size > 0) {
      Settle();
      const size_t here = std::min(size, pieces_[piece_].size() - offset_);
      offset_ += here;
      size -= here;
    }
    return Step::kOk;
  }

  // Copies `size` bytes from here on into *joined, or shows them where they lie in one piece.
  void Take(size_t size, std::string_view* view, std::string* joined) {
    if (size == 0) return;
    Settle();
    if (size <= pieces_[piece_].size() - offset_) {
      *view = pieces_[piece_].view().substr(offset_, size);
      return;
    }
    joined->reserve(size);
    while (joined->size() < size) {
      Settle();
      const std::string_view here = pieces_[piece_].view().substr(offset_, size - joined->size());
      joined->append(here);
      offset_ += here.size();
    }
  }

 private:
  // Goes on to the piece that has the byte at the position. Only below the window, so there is one.
  void Settle() {
    while (offset_ == pieces_[piece_].size()) {
      base_ += offset_;
      offset_ = 0;
      ++piece_;
    }
  }

  std::span<const base::Slice> pieces_;
  size_t window_;
  size_t piece_ = 0;
  size_t offset_ = 0;  // in the piece; may be its size
  size_t base_ = 0;    // position of the piece's first byte
};

struct Tag {
  uint32_t number = 0;
  uint32_t type = 0;
};

Step ReadTag(Cursor& cursor, size_t end, Tag* out) {
  uint64_t tag = 0;
  if (Step step = cursor.Varint(end, kTagBytesMax, &tag); step != Step::kOk) return step;
  const uint32_t low = static_cast<uint32_t>(tag);  // a tag is 32 bits
  *out = {low >> 3, low & 7};
  return out->number == 0 ? Step::kMalformed : Step::kOk;
}

Step SkipValue(Cursor& cursor, size_t end, uint32_t type) {
  uint64_t ignored = 0;
  size_t length = 0;
  switch (type) {
    case kVarint:
      return cursor.Varint(end, kVarintBytesMax, &ignored);
    case kFixed64:
      return cursor.Fixed(end, 8, &ignored);
    case kFixed32:
      return cursor.Fixed(end, 4, &ignored);
    case kDelimited:
      if (Step step = cursor.Length(end, &length); step != Step::kOk) return step;
      return cursor.Skip(length);
    default:
      return Step::kMalformed;  // 6 and 7 are none; a group's end without its begin
  }
}

// To the end of the group that `number` began. A stack of its own: the sender chooses the depth.
Step SkipGroup(Cursor& cursor, size_t end, uint32_t number) {
  std::array<uint32_t, kGroupDepthMax> open;
  size_t depth = 0;
  open[depth++] = number;
  while (depth > 0) {
    Tag tag;
    if (Step step = ReadTag(cursor, end, &tag); step != Step::kOk) return step;
    if (tag.type == kGroup) {
      if (depth == open.size()) return Step::kMalformed;
      open[depth++] = tag.number;
    } else if (tag.type == kGroupEnd) {
      if (open[--depth] != tag.number) return Step::kMalformed;
    } else if (Step step = SkipValue(cursor, end, tag.type); step != Step::kOk) {
      return step;
    }
  }
  return Step::kOk;
}

// The pass. Invariant: ends_[0..depth_] are the ends of the messages that the cursor is in, outermost first;
// numbers_[depth_] is the field looked for in the innermost.
class FieldScan {
 public:
  FieldScan(Cursor cursor, std::span<const uint32_t> numbers, size_t end)
      : cursor_(cursor), at_(cursor), numbers_(numbers) {
    ends_[0] = end;
  }

  // kOk: to the end of the message.
  Step Run() {
    for (;;) {
      while (cursor_.position() == ends_[depth_]) {
        if (depth_ == 0) return Step::kOk;
        --depth_;
      }
      if (Step step = Next(); step != Step::kOk) return step;
    }
  }

  // What Run found.
  bool found() const { return found_; }
  void Store(FieldValue* out) {
    out->delimited = delimited_;
    out->number = number_;
    if (delimited_) at_.Take(size_, &out->view, &out->joined);
  }

 private:
  Step Next() {
    const size_t end = ends_[depth_];
    Tag tag;
    if (Step step = ReadTag(cursor_, end, &tag); step != Step::kOk) return step;
    if (tag.type == kGroup) return SkipGroup(cursor_, end, tag.number);
    if (tag.number != numbers_[depth_]) return SkipValue(cursor_, end, tag.type);
    if (depth_ + 1 == numbers_.size()) return Leaf(end, tag.type);
    if (tag.type != kDelimited) return SkipValue(cursor_, end, tag.type);
    size_t length = 0;
    if (Step step = cursor_.Length(end, &length); step != Step::kOk) return step;
    ends_[++depth_] = cursor_.position() + length;
    return Step::kOk;
  }

  Step Leaf(size_t end, uint32_t type) {
    if (type == kDelimited) {
      size_t length = 0;
      if (Step step = cursor_.Length(end, &length); step != Step::kOk) return step;
      const Cursor begin = cursor_;
      if (Step step = cursor_.Skip(length); step != Step::kOk) return step;
      at_ = begin;
      size_ = length;
      number_ = 0;
    } else {
      uint64_t value = 0;
      const Step step = type == kVarint    ? cursor_.Varint(end, kVarintBytesMax, &value)
                        : type == kFixed64 ? cursor_.Fixed(end, 8, &value)
                        : type == kFixed32 ? cursor_.Fixed(end, 4, &value)
                                           : Step::kMalformed;
      if (step != Step::kOk) return step;
      number_ = value;
    }
    delimited_ = type == kDelimited;
    found_ = true;
    return Step::kOk;
  }

  Cursor cursor_;
  Cursor at_;  // the first byte of the value found, if it is delimited
  const std::span<const uint32_t> numbers_;
  std::array<size_t, kFieldDepthMax> ends_;
  size_t depth_ = 0;
  bool found_ = false;
  bool delimited_ = false;
  size_t size_ = 0;
  uint64_t number_ = 0;
};

size_t TotalBytes(std::span<const base::Slice> pieces) {
  size_t total = 0;
  for (const base::Slice& piece : pieces) total += piece.size();
  return total;
}

struct Prefix {
  bool compressed = false;
  size_t length = 0;
};

// There are at least kMessagePrefixBytes.
Prefix ReadPrefix(Cursor& cursor) {
  Prefix out;
  for (size_t i = 0; i < kMessagePrefixBytes; ++i) {
    uint8_t byte = 0;
    (void)cursor.Byte(kMessagePrefixBytes, &byte);
    if (i == 0) {
      out.compressed = byte != 0;
    } else {
      out.length = out.length << 8 | byte;
    }
  }
  return out;
}

}  // namespace

FieldValue ReadField(std::span<const base::Slice> message, std::span<const uint32_t> numbers, size_t bytes_max) {
  SLUICE_CHECK(!numbers.empty() && numbers.size() <= kFieldDepthMax);
  FieldValue out;
  const size_t total = TotalBytes(message);
  if (total < kMessagePrefixBytes) {
    out.kind = FieldValue::Kind::kTruncated;
    return out;
  }
  Cursor start(message, kMessagePrefixBytes);
  const Prefix prefix = ReadPrefix(start);
  if (prefix.compressed) {
    out.kind = FieldValue::Kind::kCompressed;
    out.complete = true;
    return out;
  }
  const size_t wanted = kMessagePrefixBytes + std::min(prefix.length, bytes_max);
  out.complete = total >= wanted;
  Cursor cursor(message, std::min(total, wanted));
  (void)cursor.Skip(kMessagePrefixBytes);
  FieldScan scan(cursor, numbers, kMessagePrefixBytes + prefix.length);
  const Step step = scan.Run();
  if (step == Step::kMalformed) {
    out.kind = FieldValue::Kind::kMalformed;
    out.complete = true;
  } else if (scan.found()) {
    out.kind = FieldValue::Kind::kFound;
    scan.Store(&out);
  } else {
    out.kind = step == Step::kEnd ? FieldValue::Kind::kTruncated : FieldValue::Kind::kAbsent;
  }
  return out;
}

size_t FieldBytesWanted(std::span<const base::Slice> message, size_t bytes_max) {
  if (TotalBytes(message) < kMessagePrefixBytes) return kMessagePrefixBytes;
  Cursor cursor(message, kMessagePrefixBytes);
  const Prefix prefix = ReadPrefix(cursor);
  return kMessagePrefixBytes + (prefix.compressed ? 0 : std::min(prefix.length, bytes_max));
}

uint64_t HashField(const FieldValue& value, uint64_t seed) {
  if (value.kind == FieldValue::Kind::kFound && value.delimited && !value.bytes().empty()) {
    return base::Hash64(value.bytes(), seed);
  }
  return base::Hash64(value.kind == FieldValue::Kind::kFound ? value.number : uint64_t{0}, seed);
}

uint64_t XxHashField(const FieldValue& value) {
  if (value.kind != FieldValue::Kind::kFound) return base::XxHash64({});
  if (value.delimited) return base::XxHash64(value.bytes());
  if (value.number == 0) return base::XxHash64({});
  std::array<char, 20> digits;  // of 2^64 - 1
  const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), value.number).ptr;
  return base::XxHash64({digits.data(), static_cast<size_t>(end - digits.data())});
}

const MethodField* FindMethodField(const HashBy& hash_by, std::string_view path) {
  const auto& fields = hash_by.fields;
  if (fields.size() == 1 && fields[0].path.empty()) return &fields[0];
  const auto found =
      std::lower_bound(fields.begin(), fields.end(), path,
                       [](const MethodField& field, std::string_view wanted) { return field.path < wanted; });
  return found != fields.end() && found->path == path ? &*found : nullptr;
}

}  // namespace sluice::proxy
