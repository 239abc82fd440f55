#include "proxy/grpc_timeout.h"

#include <charconv>
#include <cstdint>
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
  int64_t nanos = timeout.count() < 1 ? 1 : timeout.count();
  GrpcTimeoutText out;
  for (const Unit& unit : kUnits) {
    int64_t number = nanos / unit.nanos;
    if (number > kDigitsMax && unit.letter != 'H') continue;
    if (number > kDigitsMax) number = kDigitsMax;
    auto end = std::to_chars(out.text, out.text + 9, number).ptr;
    *end++ = unit.letter;
    out.size = static_cast<size_t>(end - out.text);
    return out;
  }
  return out;
}

}  // namespace sluice::proxy
