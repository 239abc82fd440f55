// ReverseBuffer: a message of protobuf, written from its end to its beginning: the length of each part is known when it
// is to be written, and nothing is copied.
//
//   const size_t mark = out.size();
//   out.Text(2, value);
//   out.Text(1, key);       // stands before the value
//   out.Wrap(9, mark);      // all since the mark is field 9
//
// One thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace sluice::tracing {

class ReverseBuffer {
 public:
  size_t size() const { return used_; }
  std::string_view view() const { return {end() - used_, used_}; }
  void Clear() { used_ = 0; }

  void Text(uint32_t field, std::string_view text) {
    Bytes(text);
    Length(field, text.size());
  }
  void Number(uint32_t field, uint64_t value) {
    Varint(value);
    Varint(field << 3);
  }
  void Fixed64(uint32_t field, uint64_t value) {
    Little(value, 8);
    Varint(field << 3 | 1);
  }
  void Fixed32(uint32_t field, uint32_t value) {
    Little(value, 4);
    Varint(field << 3 | 5);
  }
  void Double(uint32_t field, double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    Fixed64(field, bits);
  }
  // All that was written since size() was `mark` is the message or the bytes of the field.
  void Wrap(uint32_t field, size_t mark) { Length(field, used_ - mark); }
  // Bytes of a message, as they are.
  void Bytes(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(Room(bytes.size()), bytes.data(), bytes.size());
  }
  // `value`, highest byte first.
  void BigEndian(uint64_t value) {
    char* to = Room(8);
    for (int shift = 56; shift >= 0; shift -= 8) *to++ = static_cast<char>(value >> shift);
  }

 private:
  char* end() const { return bytes_.get() + capacity_; }
  char* Room(size_t size) {
    if (capacity_ - used_ < size) Grow(size);
    used_ += size;
    return end() - used_;
  }
  void Grow(size_t size) {
    const size_t capacity = (capacity_ + size) * 2 + 4096;
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (used_ > 0) std::memcpy(larger.get() + capacity - used_, end() - used_, used_);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }
  void Length(uint32_t field, size_t bytes) {
    Varint(bytes);
    Varint(field << 3 | 2);
  }
  void Varint(uint64_t value) {
    char bytes[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7) bytes[size++] = static_cast<char>(value | 0x80);
    bytes[size++] = static_cast<char>(value);
    std::memcpy(Room(size), bytes, size);
  }
  void Little(uint64_t value, int bytes) {
    char* to = Room(static_cast<size_t>(bytes));
    for (int i = 0; i < bytes; ++i) *to++ = static_cast<char>(value >> (8 * i));
  }

  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
  size_t used_ = 0;  // at the end of bytes_
};

}  // namespace sluice::tracing
