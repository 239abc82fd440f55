#include "proxy/tracing/trace_context.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/escaping.h"

namespace sluice::proxy {
namespace {

constexpr uint8_t kSampledFlag = 1, kRandomFlag = 2;
constexpr char kHex[] = "0123456789abcdef";

// Reads lower-case hexadecimal digits (W3C Trace Context 3.2: "HEXDIGLC") from `text`, which has at least `digits`.
bool TakeHex(std::string_view& text, size_t digits, uint64_t& out) {
  out = 0;
  for (size_t i = 0; i < digits; ++i) {
    const char c = text[i];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    out = out << 4 | static_cast<uint64_t>(digit);
  }
  text.remove_prefix(digits);
  return true;
}

bool TakeDash(std::string_view& text) {
  if (text[0] != '-') return false;
  text.remove_prefix(1);
  return true;
}

char* PutHex(char* to, uint64_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) *to++ = kHex[value >> shift & 15];
  return to;
}

uint64_t BigEndian(const char* bytes) {
  uint64_t out = 0;
  for (int i = 0; i < 8; ++i) out = out << 8 | static_cast<uint8_t>(bytes[i]);
  return out;
}

char* PutBigEndian(char* to, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) *to++ = static_cast<char>(value >> shift);
  return to;
}

bool IsKeyPart(std::string_view part, size_t bytes_max, bool digit_first) {
  if (part.empty() || part.size() > bytes_max) return false;
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!lower(part[0]) && !(digit_first && digit(part[0]))) return false;
  return std::all_of(part.begin(), part.end(),
                     [&](char c) { return lower(c) || digit(c) || c == '_' || c == '-' || c == '*' || c == '/'; });
}

// "name" or "tenant@system". Version 1 lets a digit begin only a tenant's name, version 2 any key: what either allows
// is passed on.
bool IsMember(std::string_view member) {
  const size_t equals = member.find('=');
  if (equals == member.npos) return false;
  const std::string_view key = member.substr(0, equals), value = member.substr(equals + 1);
  const size_t at = key.find('@');
  const bool legal = at == key.npos
                         ? IsKeyPart(key, 256, true)
                         : IsKeyPart(key.substr(0, at), 241, true) && IsKeyPart(key.substr(at + 1), 14, false);
  if (!legal || value.empty() || value.size() > 256) return false;
  return std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~' && c != ',' && c != '='; });
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(std::string_view value) {
  if (value.size() < kTraceparentBytes) return std::nullopt;
  std::string_view rest = value;
  uint64_t version = 0, flags = 0;
  TraceContext out;
  const bool legal = TakeHex(rest, 2, version) && TakeDash(rest) && TakeHex(rest, 16, out.trace.high) &&
                     TakeHex(rest, 16, out.trace.low) && TakeDash(rest) && TakeHex(rest, 16, out.span) &&
                     TakeDash(rest) && TakeHex(rest, 2, flags);
  if (!legal || version == 0xff || !out.trace.valid() || out.span == 0) return std::nullopt;
  // 3.2.4: a later version may have more behind a dash, version 00 has nothing.
  if (!rest.empty() && (version == 0 || rest[0] != '-')) return std::nullopt;
  out.sampled = (flags & kSampledFlag) != 0;
  out.random = (flags & kRandomFlag) != 0;
  return out;
}

TraceparentText FormatTraceparent(const TraceContext& context) {
  TraceparentText out;
  char* to = out.data();
  *to++ = '0';
  *to++ = '0';
  *to++ = '-';
  to = PutHex(PutHex(to, context.trace.high, 16), context.trace.low, 16);
  *to++ = '-';
  to = PutHex(to, context.span, 16);
  *to++ = '-';
  PutHex(to, (context.sampled ? kSampledFlag : 0) | (context.random ? kRandomFlag : 0), 2);
  return out;
}

// A version, then fields with a number before each: 0 the trace's id, 1 the span's, 2 options. Behind a number that
// version 0 does not know nothing can be read.
std::optional<TraceContext> ParseGrpcTrace(std::string_view value) {
  constexpr size_t kTextMax = 64;
  std::string bytes;
  if (value.empty() || value.size() > kTextMax || !absl::Base64Unescape({value.data(), value.size()}, &bytes))
    return std::nullopt;
  if (bytes.empty() || bytes[0] != 0) return std::nullopt;
  TraceContext out;
  std::string_view rest = std::string_view(bytes).substr(1);
  const auto take = [&rest](size_t size) {
    if (rest.size() < 1 + size) return static_cast<const char*>(nullptr);
    const char* const at = rest.data() + 1;
    rest.remove_prefix(1 + size);
    return at;
  };
  while (!rest.empty() && rest[0] >= 0 && rest[0] <= 2) {
    const char field = rest[0];
    const char* const at = take(field == 0 ? 16 : field == 1 ? 8 : 1);
    if (at == nullptr) return std::nullopt;
    if (field == 0) out.trace = {BigEndian(at), BigEndian(at + 8)};
    if (field == 1) out.span = BigEndian(at);
    if (field == 2) out.sampled = (*at & kSampledFlag) != 0;
  }
  if (!out.trace.valid() || out.span == 0) return std::nullopt;
  return out;
}

GrpcTraceText FormatGrpcTrace(const TraceContext& context) {
  std::array<char, kGrpcTraceBytes> bytes{};
  char* to = bytes.data() + 2;  // the version, and field 0
  to = PutBigEndian(PutBigEndian(to, context.trace.high), context.trace.low);
  *to++ = 1;
  to = PutBigEndian(to, context.span);
  *to++ = 2;
  *to = context.sampled ? kSampledFlag : 0;
  std::string text;
  absl::Base64Escape({bytes.data(), bytes.size()}, &text);
  GrpcTraceText out;
  std::memcpy(out.data(), text.data(), out.size());  // without the one '=' behind it
  return out;
}

bool IsTracestate(std::string_view value, size_t& members_before) {
  while (true) {
    const size_t comma = value.find(',');
    const std::string_view member = Trimmed(value.substr(0, comma));
    // 3.3.1.1: empty members are allowed, and mean nothing.
    if (!member.empty() && (!IsMember(member) || ++members_before > kTracestateMembersMax)) return false;
    if (comma == value.npos) return true;
    value.remove_prefix(comma + 1);
  }
}

std::array<char, kTraceIdHexBytes> HexOf(const TraceId& id) {
  std::array<char, kTraceIdHexBytes> out;
  PutHex(PutHex(out.data(), id.high, 16), id.low, 16);
  return out;
}

}  // namespace sluice::proxy
