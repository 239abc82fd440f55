// How sluicectl reads single values of its command line, and says what is wrong with one: always kInvalidArgument.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace sluice::ctl {

struct EndpointArg {
  std::string name, address;
  std::optional<double> weight;
  bool operator==(const EndpointArg&) const = default;
};

// "[NAME=]ADDRESS[@WEIGHT]". A NAME holds neither : nor /, so "unix:/a=b" is an address; a WEIGHT is a
// number, so "unix:/a@b" is one too.
base::Result<EndpointArg> ParseEndpoint(std::string_view text);
// "NAME[@WEIGHT]".
base::Result<EndpointArg> ParseNamed(std::string_view text);
// A number above 0.
base::Result<double> ParseWeight(std::string_view text);
// "500ms", "30s", "2m", "1h"; whole numbers, at most a day.
base::Result<std::chrono::milliseconds> ParseDuration(std::string_view text);
// A whole number that fits in 32 bits; the daemon knows the range.
base::Result<uint32_t> ParseCount(std::string_view text);
// A version of a cluster's list.
base::Result<uint64_t> ParseVersion(std::string_view text);
// Calls a second.
base::Result<double> ParseRate(std::string_view text);
// A number, 0 or more; the daemon knows the range.
base::Result<double> ParseNumber(std::string_view text);
// "NAME=VALUE"; the value may be empty and have more "=" in it. Upper case letters of the name become lower case, as
// gRPC's libraries do.
base::Result<std::pair<std::string, std::string>> ParseMetadata(std::string_view text);
// "0a 1b" or "0a1b" as bytes.
base::Result<std::string> ParseHex(std::string_view text);

}  // namespace sluice::ctl
