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
  kLimits,
  kCerts,
  kLimitSet,
  kLimitReset,
  kCacheStats,
  kCachePurge,
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

// What `limit set` changes.
struct LimitArgs {
  std::optional<double> rate;
  std::optional<uint32_t> burst, max, queue;
  bool operator==(const LimitArgs&) const = default;
};

// What `cache purge` drops; empty: all of it.
struct PurgeArgs {
  std::string service, method;
  std::optional<std::string> key;  // bytes of the request message
  std::string key_file;            // or the file that holds them, to be read by Run
  bool operator==(const PurgeArgs&) const = default;
};

// PEM files and whom the daemon's certificate must be for (empty: the host of the address).
struct TlsArgs {
  std::string ca, certificate, key, server_name;
  bool any() const { return !ca.empty(); }
  bool operator==(const TlsArgs&) const = default;
};

inline constexpr std::string_view kDefaultAddress = "unix:/tmp/sluice-admin.sock";

struct Args {
  Command command = Command::kHelp;
  std::string address;
  TlsArgs tls;
  std::chrono::milliseconds timeout{10'000};  // of the RPC
  bool json = false;
  std::string cluster;                 // clusters: may be empty
  std::vector<EndpointArg> endpoints;  // of a change
  std::optional<uint64_t> if_version;
  bool preview = false;
  LimitArgs limit;
  PurgeArgs purge;
  std::string word;  // log-level: the level or empty; completion: the shell; limit: its name
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
