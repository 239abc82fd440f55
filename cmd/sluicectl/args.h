// Args: what a command line of sluicectl asks for. Parsing only: no I/O, no environment but what is handed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "sluicectl/values.h"

namespace sluice::ctl {

enum class Command : uint8_t {
  kPrint,  // Args::text: help, version, a completion script, candidates of completion
  kStatus,
  kWaitReady,
  kClusters,
  kEndpoints,
  kAdd,
  kRemove,
  kReweight,
  kReplace,
  kDrainEndpoint,
  kUndrainEndpoint,
  kReset,
  kEject,
  kRestore,
  kResetBackoff,
  kLimits,
  kCerts,
  kXds,
  kWhy,
  kRoutes,
  kExplain,
  kTop,
  kLimitSet,
  kLimitReset,
  kFaultAdd,
  kFaultList,
  kFaultRemove,
  kCacheStats,
  kCachePurge,
  kConfigDump,
  kConfigDiff,
  kReload,
  kUpgrade,
  kProcesses,
  kMetrics,
  kLogLevel,
  kDrain,
  kStop,
  kCompletion,
  // For completion: the names of clusters, of Args::cluster's endpoints, of limits, of routes, or the ids of faults,
  // that begin with Args::word.
  kCompleteCluster,
  kCompleteEndpoint,
  kCompleteLimit,
  kCompleteRoute,
  kCompleteFault,
};

// What `limit set` changes.
struct LimitArgs {
  std::optional<double> rate;
  std::optional<uint32_t> burst, max, queue;
  std::optional<std::chrono::milliseconds> queue_time;
  bool operator==(const LimitArgs&) const = default;
};

// What `fault add` asks for, and which one `fault remove` ends.
struct FaultArgs {
  std::chrono::milliseconds delay{0}, time{0};
  std::string abort;
  std::optional<uint32_t> reset_after;
  std::optional<double> percent;
  uint64_t id = 0;
  bool operator==(const FaultArgs&) const = default;
};

// The call that `explain` asks about.
struct ExplainArgs {
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string listener, authority;
  std::optional<std::string> type;  // --content-type
  bool plain = false;               // none
  bool operator==(const ExplainArgs&) const = default;
};

// What `cache purge` drops; empty: all of it.
struct PurgeArgs {
  std::string service, method;
  std::optional<std::string> key;  // bytes of the request message
  std::string key_file;            // or the file that holds them, to be read by Run
  bool operator==(const PurgeArgs&) const = default;
};

// PEM files, and the name that the daemon's certificate must be for (empty: the host of the address).
struct TlsArgs {
  std::string ca, certificate, key, server_name;
  bool any() const { return !ca.empty(); }
  bool operator==(const TlsArgs&) const = default;
};

inline constexpr std::string_view kDefaultAddress = "unix:/tmp/sluice-admin.sock";

struct Args {
  Command command = Command::kPrint;
  std::string address;
  TlsArgs tls;
  std::chrono::milliseconds timeout{10'000};  // of the RPC
  bool json = false;
  std::string cluster;                 // clusters: may be empty
  std::vector<EndpointArg> endpoints;  // of a change
  std::optional<double> weight;        // of those endpoints that have none of their own
  uint32_t priority = 0;               // these two of all of them: add, replace
  std::string locality;
  std::optional<uint64_t> if_version;
  bool preview = false;
  bool force = false;                        // a removal may take away all keys
  bool or_reload = false;                    // upgrade: a reload, where the program's file is the one that runs
  bool once = false;                         // top: one table
  std::chrono::milliseconds interval{2000};  // top: between two looks
  bool why = false;                          // endpoints: with their health and its changes
  LimitArgs limit;
  FaultArgs fault;
  PurgeArgs purge;
  ExplainArgs explain;
  // log-level: the level or empty; limit: its name; fault add: its target; why: a call's id or empty; explain: the path
  std::string word;
  bool from_file = false;                                  // config dump: the file, as a reload would take it
  std::string file;                                        // config diff; empty: the daemon's own
  std::string text;                                        // kPrint
  std::optional<std::chrono::milliseconds> drain_timeout;  // drain --timeout
  std::optional<std::chrono::milliseconds> drain_delay;    // drain --delay
  std::chrono::milliseconds wait{60'000};                  // wait-ready --timeout
  bool for_endpoints = false;                              // wait-ready --for endpoints
  std::chrono::milliseconds over{0};                       // endpoint drain --over; 0: at once
};

// `words`: without the program's name. `env_address`: the value of SLUICE_ADMIN, may be empty. The error is a
// usage error.
base::Result<Args> ParseArgs(const std::vector<std::string>& words, std::string_view env_address);

// The completion script for "bash" or "zsh"; empty: no such shell.
std::string_view CompletionScript(std::string_view shell);

}  // namespace sluice::ctl
