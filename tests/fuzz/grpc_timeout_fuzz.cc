// grpc-timeout: any text is refused or read as the rule of gRPC over HTTP/2 says, and what is written is read back as
// no more.
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "proxy/grpc_timeout.h"

namespace sluice::proxy {
namespace {

// The rule again, in wider arithmetic: 1 to 8 digits and one of H M S m u n.
std::optional<base::Nanos> Reference(std::string_view text) {
  if (text.size() < 2 || text.size() > 9) return std::nullopt;
  const std::string_view digits = text.substr(0, text.size() - 1);
  if (digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
  const size_t unit = std::string_view("numSMH").find(text.back());
  if (unit == std::string_view::npos) return std::nullopt;
  constexpr int64_t kNanos[] = {1, 1000, 1000'000, 1000'000'000, 60'000'000'000, 3600'000'000'000};
  __extension__ __int128 nanos = 0;
  for (char c : digits) nanos = nanos * 10 + (c - '0');
  nanos *= kNanos[unit];
  return nanos > INT64_MAX ? base::Nanos::max() : base::Nanos(static_cast<int64_t>(nanos));
}

void CheckWritten(base::Nanos timeout) {
  const GrpcTimeoutText text = FormatGrpcTimeout(timeout);
  const std::optional<base::Nanos> back = ParseGrpcTimeout(text.view());
  SLUICE_CHECK(back.has_value());
  if (timeout < base::Nanos(1)) {
    SLUICE_CHECK(*back == base::Nanos(1));
    return;
  }
  SLUICE_CHECK(*back <= timeout);
  // A unit is at most 1,000 of the one before, which needed nine digits: five are left, so 1 in 100,000 is lost at
  // most; and nothing by writing it again.
  SLUICE_CHECK(timeout - *back <= timeout / 99'999);
  SLUICE_CHECK(FormatGrpcTimeout(*back).view() == text.view());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::optional<base::Nanos> parsed = ParseGrpcTimeout(text);
  SLUICE_CHECK(parsed == Reference(text));
  if (parsed) {
    SLUICE_CHECK(parsed->count() >= 0);
    CheckWritten(*parsed);
  }
  int64_t number = 0;
  if (size > 0) std::memcpy(&number, data, size < sizeof(number) ? size : sizeof(number));
  CheckWritten(base::Nanos(number));
  return 0;
}

}  // namespace sluice::proxy
