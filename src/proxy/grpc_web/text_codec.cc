#include "proxy/grpc_web/text_codec.h"

namespace sluice::proxy::grpc_web {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kNone = 0xff;

constexpr std::array<uint8_t, 256> MakeValues() {
  std::array<uint8_t, 256> values{};
  for (uint8_t& value : values) value = kNone;
  for (size_t i = 0; i < kAlphabet.size(); ++i) values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  return values;
}
constexpr std::array<uint8_t, 256> kValues = MakeValues();

// A Slice's bytes are immutable once it is shared; before that its maker fills it.
uint8_t* Writable(const base::Slice& slice) { return const_cast<uint8_t*>(slice.data()); }

char* Write(uint8_t a, uint8_t b, uint8_t c, char* to) {
  *to++ = kAlphabet[a >> 2];
  *to++ = kAlphabet[(a & 0x03) << 4 | b >> 4];
  *to++ = kAlphabet[(b & 0x0f) << 2 | c >> 6];
  *to++ = kAlphabet[c & 0x3f];
  return to;
}

}  // namespace

bool TextDecoder::Decode(std::string_view text, base::Slice* out) {
  const size_t groups = (held_ + text.size()) / 4;
  const base::Slice bytes = groups > 0 ? base::Slice::Uninitialized(groups * 3) : base::Slice();
  uint8_t* const begin = Writable(bytes);
  uint8_t* to = begin;
  for (const char c : text) {
    if (!Add(c, to)) return false;
  }
  const auto size = static_cast<size_t>(to - begin);
  // Of much padding there are fewer bytes than there is memory, which would not be counted.
  *out = size * 4 < groups * 9 ? base::Slice::Copy(begin, size) : bytes.Sub(0, size);
  return true;
}

bool TextDecoder::Add(char c, uint8_t*& to) {
  const uint8_t value = kValues[static_cast<uint8_t>(c)];
  if (c == '=') {
    if (held_ < 2) return false;  // a group stands for a byte at least
    ++padding_;
  } else if (value == kNone || padding_ > 0) {
    return false;
  }
  group_ = group_ << 6 | (value & 0x3f);
  if (++held_ < 4) return true;
  *to++ = static_cast<uint8_t>(group_ >> 16);
  if (padding_ < 2) *to++ = static_cast<uint8_t>(group_ >> 8);
  if (padding_ < 1) *to++ = static_cast<uint8_t>(group_);
  group_ = held_ = padding_ = 0;
  return true;
}

base::Slice TextEncoder::Encode(std::string_view bytes, bool flush) {
  const size_t all = held_ + bytes.size();
  const size_t groups = flush ? (all + 2) / 3 : all / 3;
  const base::Slice text = groups > 0 ? base::Slice::Uninitialized(groups * 4) : base::Slice();
  char* to = reinterpret_cast<char*>(Writable(text));
  size_t at = 0;  // in what was held and `bytes`, as one
  const auto byte = [&](size_t i) { return i < held_ ? carry_[i] : static_cast<uint8_t>(bytes[i - held_]); };
  for (; at + 3 <= all; at += 3) to = Write(byte(at), byte(at + 1), byte(at + 2), to);
  const size_t left = all - at;
  if (flush && left > 0) {
    to = Write(byte(at), left > 1 ? byte(at + 1) : 0, 0, to);
    to[-1] = '=';
    if (left == 1) to[-2] = '=';
    held_ = 0;
    return text;
  }
  const std::array<uint8_t, 2> rest = {left > 0 ? byte(at) : uint8_t{0}, left > 1 ? byte(at + 1) : uint8_t{0}};
  carry_ = rest;
  held_ = static_cast<uint8_t>(left);
  return text;
}

}  // namespace sluice::proxy::grpc_web
