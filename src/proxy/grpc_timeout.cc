#include "proxy/grpc_timeout.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>

namespace sluice::proxy {
namespace {

struct Unit {
  char letter;
  int64_t nanos;
};
constexpr Unit kUnits[] = {
    {'n', 1}, {'u', 1'000}, {'m', 1'000'000}, {'S', 1'000'000'000}, {'M', 60'000'000'000}, {'H', 3'600'000'000'000}};
constexpr int64_t kDigitsMax = 99'999'999;
// A cancellation so near to a deadline is that deadline, on hosts whose timers are late or not in order.
constexpr base::Nanos kEarlyMax = std::chrono::milliseconds(100);

struct Formatted {
  int64_t number;
  Unit unit;
};

// In the finest unit in which eight digits are enough; not above `timeout`, but at least one nanosecond.
Formatted Cut(base::Nanos timeout) {
  const int64_t nanos = std::max<int64_t>(timeout.count(), 1);
  for (const Unit& unit : kUnits) {
    const int64_t number = nanos / unit.nanos;
    if (number <= kDigitsMax) return {number, unit};
  }
  return {kDigitsMax, kUnits[std::size(kUnits) - 1]};  // no base::Nanos is as long
}

}  // namespace

std::optional<base::Nanos> ParseGrpcTimeout(std::string_view value) {
  if (value.size() < 2 || value.size() > 9) return std::nullopt;
  int64_t number = 0;
  for (char c : value.substr(0, value.size() - 1)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + (c - '0');
  }
  for (const Unit& unit : kUnits) {
    if (unit.letter != value.back()) continue;
    if (number > std::numeric_limits<int64_t>::max() / unit.nanos) return base::Nanos::max();
    return base::Nanos(number * unit.nanos);
  }
  return std::nullopt;
}

GrpcTimeoutText FormatGrpcTimeout(base::Nanos timeout) {
  const auto [number, unit] = Cut(timeout);
  GrpcTimeoutText out;
  char* end = std::to_chars(out.text, out.text + 9, number).ptr;
  *end++ = unit.letter;
  out.size = static_cast<size_t>(end - out.text);
  return out;
}

base::Nanos AsFormatted(base::Nanos timeout) {
  const auto [number, unit] = Cut(timeout);
  return base::Nanos(number * unit.nanos);
}

bool RanOutAtServer(base::Nanos elapsed, base::Nanos timeout) {
  constexpr base::Nanos kGrain = std::chrono::milliseconds(1);
  return elapsed >= AsFormatted(timeout) - kGrain;
}

bool CancelledByServersTimer(base::Nanos elapsed, base::Nanos timeout) {
  return RanOutAtServer(elapsed, timeout) || elapsed >= timeout - std::min(timeout / 10, kEarlyMax);
}

bool RanOutAtClient(base::Nanos elapsed, base::Nanos timeout) {
  return elapsed >= timeout - std::max(timeout / 100, std::min(timeout / 10, kEarlyMax));
}

}  // namespace sluice::proxy
