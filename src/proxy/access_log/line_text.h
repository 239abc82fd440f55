// The pieces of a line, written where the caller has room; each returns the end of what it wrote. No allocation, no
// locale.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::proxy {

// Room for any number or time below.
inline constexpr size_t kLinePieceBytesMax = 40;
// How many bytes one byte of a text may become between quotes.
inline constexpr size_t kQuotedBytesPerByte = 6;

inline char* PutText(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

inline char* PutNumber(char* to, uint64_t number) { return std::to_chars(to, to + kLinePieceBytesMax, number).ptr; }

// Milliseconds with three digits, rounded: 1.234. `nanos` >= 0.
inline char* PutMillis(char* to, int64_t nanos) {
  const uint64_t micros = (static_cast<uint64_t>(nanos) + 500) / 1000;
  to = PutNumber(to, micros / 1000);
  const uint64_t part = micros % 1000;
  to[0] = '.';
  to[1] = static_cast<char>('0' + part / 100);
  to[2] = static_cast<char>('0' + part / 10 % 10);
  to[3] = static_cast<char>('0' + part % 10);
  return to + 4;
}

// A string literal of JSON (RFC 8259 section 7). ASCII only: what is outside of printable ASCII is written byte by byte
// as \u00XX, so that bytes that are no UTF-8 spoil neither the line nor the file. The text format quotes in the same
// way. Room: kQuotedBytesPerByte a byte, and 2.
char* PutQuoted(char* to, std::string_view text);

// As it is where it is a word, which keeps the line's fields apart; "-" where it is empty; else quoted.
char* PutWord(char* to, std::string_view text);

// RFC 3339 with milliseconds, UTC: 2026-01-02T03:04:05.678Z. The part up to the second is made once a second.
class TimeText {
 public:
  // `nanos` since 1970, by the system's clock.
  char* Put(char* to, int64_t nanos) {
    const int64_t second = nanos >= 0 ? nanos / kSecond : (nanos - kSecond + 1) / kSecond;
    if (second != second_) [[unlikely]]
      Make(second);
    const auto millis = static_cast<uint32_t>((nanos - second * kSecond) / 1'000'000);
    to = PutText(to, {text_, sizeof(text_)});
    to[0] = static_cast<char>('0' + millis / 100);
    to[1] = static_cast<char>('0' + millis / 10 % 10);
    to[2] = static_cast<char>('0' + millis % 10);
    to[3] = 'Z';
    return to + 4;
  }

 private:
  static constexpr int64_t kSecond = 1'000'000'000;
  void Make(int64_t second);

  int64_t second_ = INT64_MIN;
  char text_[20] = {};  // "2026-01-02T03:04:05."
};

}  // namespace sluice::proxy
