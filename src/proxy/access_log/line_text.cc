#include "proxy/access_log/line_text.h"

#include <array>
#include <chrono>

namespace sluice::proxy {
namespace {

constexpr uint8_t kPlain = 0, kEscaped = 1, kNoWord = 2;
using Classes = std::array<uint8_t, 256>;
constexpr Classes MakeClasses() {
  Classes out{};
  for (size_t c = 0; c < out.size(); ++c) {
    if (c == '"' || c == '\\' || c < 0x20 || c >= 0x7f) out[c] = kEscaped;
    if (c == ' ') out[c] = kNoWord;
  }
  return out;
}
constexpr Classes kClass = MakeClasses();

constexpr uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
constexpr uint64_t HasZero(uint64_t x) { return (x - kOnes) & ~x & kHighs; }
// Of eight bytes: whether one is to be escaped. A byte above 0x7f has the high bit; below it the tricks of Mycroft
// hold.
constexpr bool AnyEscaped(uint64_t x) {
  const uint64_t below_space = (x - kOnes * 0x20) & ~x & kHighs;
  const uint64_t found =
      x | below_space | HasZero(x ^ (kOnes * '"')) | HasZero(x ^ (kOnes * '\\')) | HasZero(x ^ (kOnes * 0x7f));
  return (found & kHighs) != 0;
}

char* PutEscaped(char* to, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  *to++ = '\\';
  if (c == '"' || c == '\\') {
    *to++ = static_cast<char>(c);
    return to;
  }
  to = PutText(to, "u00");
  *to++ = kHex[c >> 4];
  *to++ = kHex[c & 15];
  return to;
}

char* PutDigits(char* to, uint32_t number, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    to[i] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
  return to + digits;
}

}  // namespace

char* PutQuoted(char* to, std::string_view text) {
  *to++ = '"';
  const char* from = text.data();
  size_t left = text.size();
  while (left >= 8) {
    uint64_t eight;
    std::memcpy(&eight, from, 8);
    if (AnyEscaped(eight)) break;
    std::memcpy(to, &eight, 8);
    to += 8;
    from += 8;
    left -= 8;
  }
  for (; left > 0; ++from, --left) {
    const auto c = static_cast<unsigned char>(*from);
    if (kClass[c] == kEscaped) [[unlikely]] {
      to = PutEscaped(to, c);
    } else {
      *to++ = static_cast<char>(c);
    }
  }
  *to++ = '"';
  return to;
}

char* PutWord(char* to, std::string_view text) {
  if (text.empty()) {
    *to++ = '-';
    return to;
  }
  char* const begin = to;
  for (const char c : text) {
    if (kClass[static_cast<unsigned char>(c)] != kPlain) [[unlikely]]
      return PutQuoted(begin, text);
    *to++ = c;
  }
  return to;
}

void TimeText::Make(int64_t second) {
  second_ = second;
  const std::chrono::sys_seconds at{std::chrono::seconds(second)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const auto of_day = static_cast<uint32_t>((at - day).count());
  char* to = PutDigits(text_, static_cast<uint32_t>(static_cast<int>(date.year())) % 10000, 4);
  *to++ = '-';
  to = PutDigits(to, static_cast<unsigned>(date.month()), 2);
  *to++ = '-';
  to = PutDigits(to, static_cast<unsigned>(date.day()), 2);
  *to++ = 'T';
  to = PutDigits(to, of_day / 3600, 2);
  *to++ = ':';
  to = PutDigits(to, of_day / 60 % 60, 2);
  *to++ = ':';
  to = PutDigits(to, of_day % 60, 2);
  *to = '.';
}

}  // namespace sluice::proxy
