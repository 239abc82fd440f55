// The static table of RFC 7541 Appendix A as Fields, and the classification of field names.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "http2/fields/field.h"

namespace sluice::http2 {

inline constexpr size_t kStaticCount = 61;
static_assert(kStaticCount == kStaticIdMax);
inline constexpr size_t kStaticSchemeHttp = 6, kStaticSchemeHttps = 7;

// A static Field with its bytes behind it. One cache line each, in read-only memory, shared by all workers.
struct alignas(64) StaticSlot {
  Field field;
  char bytes[32];  // "accept-encoding" with "gzip, deflate" is the longest: 28
};
static_assert(sizeof(StaticSlot) == 64 && offsetof(StaticSlot, bytes) == sizeof(Field));

// By index, from 1 on; 0 is not used.
extern const std::array<StaticSlot, kStaticCount + 1> kStaticSlots;

inline const Field* StaticField(size_t index) { return &kStaticSlots[index].field; }

struct NameClass {
  Token token = Token::kOther;
  uint8_t static_name_index = 0;  // the lowest static index with this name, or 0
};

// What we know of a name: one multiplication, one look-up and one compare.
NameClass ClassifyName(std::string_view name);

// The static index with the name of entry `name_index` (as ClassifyName gives it; 0: none) and this value, or
// 0.
uint16_t StaticIndex(size_t name_index, std::string_view value);

}  // namespace sluice::http2
