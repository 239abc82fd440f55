// The code is canonical: codes of one length are consecutive numbers in the order of their symbols, and
// shorter codes come first. So the lengths tell all, and every table here is made from them when this file is
// compiled.
//
// Decoding looks 9 bits ahead in a 64-bit window: one look-up gives symbol and length for all codes up to 9
// bits, which is nearly all of what headers are made of. Longer codes are found by their length's range. The
// table is 1 KiB, so it does not push a call's data out of the first-level cache.
#include "http2/hpack/huffman.h"

#include <array>
#include <bit>
#include <cstring>

namespace sluice::http2 {
namespace {

constexpr int kSymbols = 257;  // 256 is EOS
constexpr int kEos = 256;
constexpr int kLengthMax = 30;
constexpr int kPeekBits = 9;

// RFC 7541 Appendix B, the column "len in bits".
constexpr uint8_t kLengths[kSymbols] = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,  5,  5,  5,  6,  6,  6,  6,  6,  6,  6,
    7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
    7,  8,  7,  8,  13, 19, 13, 14, 6,  15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,
    5,  6,  7,  7,  7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24,
    24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22,
    23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26,
    27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23,
    22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
};

struct Code {
  uint32_t bits;
  uint32_t length;
};

struct Tables {
  std::array<Code, kSymbols> codes{};
  std::array<uint16_t, kSymbols> sorted{};        // symbols by length, then number
  std::array<uint32_t, kLengthMax + 1> first{};   // the first code of each length
  std::array<uint32_t, kLengthMax + 1> count{};   // codes of each length
  std::array<uint32_t, kLengthMax + 1> offset{};  // where the length starts in `sorted`
  std::array<uint16_t, 1 << kPeekBits> peek{};    // length << 8 | symbol; 0: the code is longer
};

constexpr Tables MakeTables() {
  Tables t;
  uint32_t code = 0, at = 0;
  for (uint32_t length = 1; length <= kLengthMax; ++length) {
    code <<= 1;
    t.first[length] = code;
    t.offset[length] = at;
    for (int symbol = 0; symbol < kSymbols; ++symbol) {
      if (kLengths[symbol] != length) continue;
      t.codes[symbol] = {code, length};
      t.sorted[at++] = static_cast<uint16_t>(symbol);
      if (length <= kPeekBits) {
        const uint32_t low = code << (kPeekBits - length), next = (code + 1) << (kPeekBits - length);
        for (uint32_t i = low; i < next; ++i) t.peek[i] = static_cast<uint16_t>(length << 8 | symbol);
      }
      ++code;
      ++t.count[length];
    }
  }
  return t;
}
constexpr Tables kTables = MakeTables();
// All 30-bit numbers are used up, the last is EOS, and three codes are as the RFC prints them.
static_assert(kTables.first[30] + kTables.count[30] == 1u << 30 && kTables.codes[kEos].bits == 0x3fffffff);
static_assert(kTables.codes['0'].bits == 0x0 && kTables.codes['z'].bits == 0x7b &&
              kTables.codes[249].bits == 0xffffffe);

struct Symbol {
  uint32_t symbol;
  uint32_t length;
};

// A code longer than kPeekBits at the top of `window`.
Symbol LongSymbol(uint64_t window) {
  for (uint32_t length = kPeekBits + 1; length <= kLengthMax; ++length) {
    const uint32_t rank = static_cast<uint32_t>(window >> (64 - length)) - kTables.first[length];
    if (rank < kTables.count[length]) return {kTables.sorted[kTables.offset[length] + rank], length};
  }
  return {kEos, kLengthMax};  // not reached: the code is complete
}

// Up to 8 bytes as the top of a word, the rest all ones, as padding is.
uint64_t LoadTop(const uint8_t* p, size_t bytes) {
  uint64_t window = ~uint64_t{0};
  if (bytes >= 8) {
    std::memcpy(&window, p, 8);
    if constexpr (std::endian::native == std::endian::little) window = __builtin_bswap64(window);
    return window;
  }
  for (size_t i = 0; i < bytes; ++i) {
    window &= ~(uint64_t{0xff} << (56 - 8 * i));
    window |= uint64_t{p[i]} << (56 - 8 * i);
  }
  return window;
}

}  // namespace

size_t HuffmanSize(std::string_view text) {
  size_t bits = 0;
  for (unsigned char c : text) bits += kLengths[c];
  return (bits + 7) / 8;
}

uint8_t* HuffmanEncode(std::string_view text, uint8_t* out) {
  uint64_t pending = 0;  // the low `bits` bits are not written yet
  uint32_t bits = 0;
  for (unsigned char c : text) {
    const Code code = kTables.codes[c];
    pending = pending << code.length | code.bits;  // bits <= 7 + 30 before the next loop
    bits += code.length;
    while (bits >= 8) {
      bits -= 8;
      *out++ = static_cast<uint8_t>(pending >> bits);
    }
  }
  if (bits > 0) *out++ = static_cast<uint8_t>(pending << (8 - bits) | 0xffu >> bits);  // the top bits of EOS
  return out;
}

char* HuffmanDecode(const uint8_t* code, size_t size, char* out) {
  const uint64_t bits = uint64_t{size} * 8;
  uint64_t at = 0;  // bits decoded
  while (at < bits) {
    // 57 bits or more, then ones: at least one code of any length, most often eight.
    const uint64_t left = bits - at;
    uint64_t window = LoadTop(code + at / 8, size - at / 8) << (at % 8);
    window |= (uint64_t{1} << (at % 8)) - 1;
    uint32_t used = 0;
    do {
      const uint16_t entry = kTables.peek[window >> (64 - kPeekBits)];
      const Symbol symbol = entry != 0 ? Symbol{entry & 0xffu, uint32_t{entry} >> 8} : LongSymbol(window);
      if (used + symbol.length > left) {
        // What is left is no whole code: padding, which is at most 7 bits of ones (RFC 7541 5.2).
        const uint64_t rest = left - used;
        return rest < 8 && window >> (64 - rest) == (uint64_t{1} << rest) - 1 ? out : nullptr;
      }
      if (symbol.symbol == kEos) return nullptr;
      *out++ = static_cast<char>(symbol.symbol);
      window = window << symbol.length | ((uint64_t{1} << symbol.length) - 1);
      used += symbol.length;
    } while (used < 57 - kLengthMax && used < left);
    at += used;
  }
  return out;
}

}  // namespace sluice::http2
