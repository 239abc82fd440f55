#include "proxy/call/request_id.h"

#include <algorithm>

namespace sluice::proxy {
namespace {

// The client's, if it has sent one that may be kept. A name that is there twice says nothing: of two readers each may
// take another one.
std::string_view KeptId(const http2::HeaderList& request) {
  const http2::Field* found = nullptr;
  for (const http2::Field* field : request) {
    if (field->token != http2::Token::kXRequestId) continue;
    if (found != nullptr) return {};
    found = field;
  }
  return found != nullptr && IsRequestId(found->value()) ? found->value() : std::string_view();
}

}  // namespace

bool IsRequestId(std::string_view value) {
  return !value.empty() && value.size() <= kRequestIdBytesMax &&
         std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::array<char, kMadeRequestIdBytes> MakeRequestId(base::Random& random) {
  constexpr uint64_t kVersionBits = 0xf000, kVersion4 = 0x4000;
  constexpr uint64_t kVariantBits = uint64_t{3} << 62, kVariant = uint64_t{2} << 62;
  const uint64_t high = (random.Next() & ~kVersionBits) | kVersion4;
  const uint64_t low = (random.Next() & ~kVariantBits) | kVariant;
  std::array<char, kMadeRequestIdBytes> text;
  char* to = text.data();
  for (int digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) *to++ = '-';
    *to++ = "0123456789abcdef"[(digit < 16 ? high : low) >> (60 - digit % 16 * 4) & 15];
  }
  return text;
}

void SetRequestId(RequestIds rule, base::Random& random, http2::HeaderList& request) {
  if (rule == RequestIds::kKeep && !KeptId(request).empty()) return;
  const auto made = MakeRequestId(random);
  request.Set(http2::Token::kXRequestId, "x-request-id", {made.data(), made.size()});
}

std::string_view RequestIdOf(RequestIds rule, bool set, const http2::HeaderList& request) {
  if (rule == RequestIds::kReplace && !set) return {};
  if (rule == RequestIds::kKeep && !set) return KeptId(request);
  const http2::Field* field = request.Find(http2::Token::kXRequestId);
  return field != nullptr ? field->value() : std::string_view();
}

}  // namespace sluice::proxy
