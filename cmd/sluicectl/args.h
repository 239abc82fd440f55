// Args: what a command line of sluicectl asks for. Parsing only: no I/O, no environment but what is handed
// in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::ctl {

enum class Command : uint8_t {
  kHelp,
  kVersion,
  kStatus,
  kClusters,
  kEndpoints,
  kAdd,
  kRemove,
  kReweight,
  kReplace,
  kDrainEndpoint,
  kUndrainEndpoint,
  kReload,
  kMetrics,
  kLogLevel,
  kDrain,
  kStop,
  kCompletion,
};

struct EndpointArg {
  std::string name, address;
  std::optional<double> weight;
  bool operator==(const EndpointArg&) const = default;
};

inline constexpr std::string_view kDefaultAddress = "unix:/tmp/sluice-admin.sock";

struct Args {
  Command command = Command::kHelp;
  std::string address;
  std::chrono::milliseconds timeout{10'000};  // of the RPC
  bool json = false;
  std::string cluster;                 // clusters: may be empty
  std::vector<EndpointArg> endpoints;  // of a change
  std::optional<uint64_t> if_version;
  bool preview = false;
  std::string word;  // log-level: the level or empty; completion: the shell
  std::optional<std::chrono::milliseconds> drain_timeout;  // drain --timeout
};

// `words`: without the program's name. `env_address`: the value of SLUICE_ADMIN, may be empty. The error is a
// usage error.
base::Result<Args> ParseArgs(const std::vector<std::string_view>& words, std::string_view env_address);

// "[NAME=]ADDRESS[@WEIGHT]". A NAME holds neither : nor /, so "unix:/a=b" is an address; a WEIGHT is a
// number, so "unix:/a@b" is one too.
base::Result<EndpointArg> ParseEndpoint(std::string_view text);
// "NAME[@WEIGHT]".
base::Result<EndpointArg> ParseNamed(std::string_view text);
// "500ms", "30s", "2m", "1h"; whole numbers, at most a day.
base::Result<std::chrono::milliseconds> ParseDuration(std::string_view text);

std::string_view Usage();
// The completion script for "bash" or "zsh"; empty: no such shell.
std::string_view CompletionScript(std::string_view shell);

}  // namespace sluice::ctl
