// The command tree as a table: each command's name, group, help and words.
#pragma once

#include <cstddef>
#include <string_view>

#include "sluicectl/args.h"
#include "sluicectl/completion.h"

namespace sluice::ctl {

struct CommandSpec {
  std::string_view name;  // one word, or two
  Command command;        // kPrint: only a first word
  const char* group;      // of the help
  const char* help;
  const char* takes = "";  // the words after it, for help and errors
  size_t words_min = 0, words_max = 0;
  const char* offers = "";  // what completion knows of the first of those words; with kOfferEndpoints of all
};

inline constexpr const char* kLook = "Look";
inline constexpr const char* kEndpoints =
    "Change a cluster's endpoints (each whole or not at all; no call fails because of it)";
inline constexpr const char* kHealth = "An endpoint's health (`endpoints CLUSTER --why` shows it)";
inline constexpr const char* kOneEndpoint = "CLUSTER NAME";
inline constexpr const char* kLimits =
    "Change a limit (at once, also for calls that wait; until a restart, or a reload that changes it)";
inline constexpr const char* kFaults =
    "Let calls fail, to see how clients bear it (for a time, at most an hour; never over a restart)";
inline constexpr const char* kCache = "The response cache";
inline constexpr const char* kChange = "Change the daemon";
inline constexpr const char* kOther = "Other";
inline constexpr const char* kEndpoint = "CLUSTER [NAME=]ADDRESS[@WEIGHT]...";
inline constexpr size_t kMany = 5000;

inline constexpr CommandSpec kCommands[] = {
    {"status", Command::kStatus, kLook, "the process: version, uptime, readiness, load"},
    {"wait-ready", Command::kWaitReady, kLook, "wait until the daemon is there and ready; prints nothing"},
    {"clusters", Command::kClusters, kLook, "clusters: policy, version and digest of their lists", "[CLUSTER]", 0, 1,
     kOfferClusters},
    {"endpoints", Command::kEndpoints, kLook, "endpoints: state, connection, weight, share of keys, calls", "CLUSTER",
     1, 1, kOfferClusters},
    {"limits", Command::kLimits, kLook, "limits of rate and concurrency: what is in force, what waits"},
    {"certs", Command::kCerts, kLook,
     "certificates of TLS: where in use, how long valid, why a new file is not in force"},
    {"xds", Command::kXds, kLook, "the control plane: its servers, the stream, each resource: version, state, error"},
    {"why", Command::kWhy, kLook,
     "why a call failed, by its sluice-call-id or x-request-id; without: the last failed calls", "[CALL-ID]", 0, 1},
    {"routes", Command::kRoutes, kLook, "routes in their order: the first whose conditions all hold takes the call"},
    {"explain", Command::kExplain, kLook,
     "which route a call would take and why, its gates, cluster, endpoint, cache and retries; none is made", "PATH", 1,
     1},
    {"top", Command::kTop, kLook,
     "live: clusters, endpoints, limits and hot keys; one table where there is no terminal"},
    {"processes", Command::kProcesses, kLook, "the process that serves, and those that it has replaced"},
    {"metrics", Command::kMetrics, kLook, "all metrics, in Prometheus text format"},
    {"add", Command::kAdd, kEndpoints, "add endpoints; without NAME the address is the name", kEndpoint, 2, kMany,
     kOfferClusters},
    {"replace", Command::kReplace, kEndpoints, "the list becomes exactly this", kEndpoint, 2, kMany, kOfferClusters},
    {"remove", Command::kRemove, kEndpoints, "no new calls; calls in flight finish", "CLUSTER NAME...", 2, kMany,
     kOfferEndpoints},
    {"reweight", Command::kReweight, kEndpoints, "change weights", "CLUSTER NAME@WEIGHT...", 2, kMany, kOfferEndpoints},
    {"drain-endpoint", Command::kDrainEndpoint, kEndpoints, "stays in the list, takes no new calls", "CLUSTER NAME...",
     2, kMany, kOfferEndpoints},
    {"undrain-endpoint", Command::kUndrainEndpoint, kEndpoints, "takes calls again", "CLUSTER NAME...", 2, kMany,
     kOfferEndpoints},
    {"reset", Command::kReset, kEndpoints, "back to the list of the configuration, or of the cluster's source",
     "CLUSTER", 1, 1, kOfferClusters},
    {"endpoint", Command::kPrint, kHealth, "drain an endpoint; eject or restore it, or probe it at once"},
    {"endpoint drain", Command::kDrainEndpoint, kHealth, "as drain-endpoint", "CLUSTER NAME...", 2, kMany,
     kOfferEndpoints},
    {"endpoint undrain", Command::kUndrainEndpoint, kHealth, "as undrain-endpoint", "CLUSTER NAME...", 2, kMany,
     kOfferEndpoints},
    {"endpoint eject", Command::kEject, kHealth, "out of rotation until it is restored", kOneEndpoint, 2, 2,
     kOfferEndpoints},
    {"endpoint restore", Command::kRestore, kHealth, "back in rotation, with a growing share of its keys", kOneEndpoint,
     2, 2, kOfferEndpoints},
    {"endpoint reset-backoff", Command::kResetBackoff, kHealth, "probe an ejected endpoint at once", kOneEndpoint, 2, 2,
     kOfferEndpoints},
    {"limit", Command::kPrint, kLimits, "set or reset a limit"},
    {"limit set", Command::kLimitSet, kLimits, "set what is given",
     "NAME and --rate, --burst, --max, --queue or --queue-time", 1, 1, kOfferLimits},
    {"limit reset", Command::kLimitReset, kLimits, "back to what is configured", "NAME", 1, 1, kOfferLimits},
    {"fault", Command::kPrint, kFaults, "add, list or remove faults"},
    {"fault add", Command::kFaultAdd, kFaults,
     "of the calls of a route (its name or number in `routes`), of a cluster's only route, or of a method",
     "ROUTE, CLUSTER or METHOD and --for, with --delay, --abort or --reset-after", 1, 1, kOfferRoutes},
    {"fault list", Command::kFaultList, kFaults,
     "those in force: what they do, for how long, and how many calls met them"},
    {"fault remove", Command::kFaultRemove, kFaults, "end one before its time", "ID", 1, 1, kOfferFaults},
    {"cache", Command::kPrint, kCache, "look at or purge the response cache"},
    {"cache stats", Command::kCacheStats, kCache, "size, hits, why responses were not kept"},
    {"cache purge", Command::kCachePurge, kCache, "drop all responses, or only those that the flags name"},
    {"config", Command::kPrint, kChange, "dump the configuration, or tell what a reload would change"},
    {"config dump", Command::kConfigDump, kChange, "the configuration in force, with every default"},
    {"config diff", Command::kConfigDiff, kChange,
     "what differs between the configuration in force and FILE (default: the daemon's own file, as it is now); exits "
     "with 0: nothing, 1: something, 2: trouble",
     "[FILE]", 0, 1, kOfferFiles},
    {"reload", Command::kReload, kChange, "read the configuration file again; with an error in it nothing changes"},
    {"upgrade", Command::kUpgrade, kChange,
     "start a new process from the program's file; it takes over, and this one goes when its streams have ended"},
    {"log-level", Command::kLogLevel, kChange, "show or set the level: trace, debug, info, warn, error or off",
     "[LEVEL]", 0, 1, "trace debug info warn error off"},
    {"drain", Command::kDrain, kChange, "say not ready, then take no new work, finish what runs, exit"},
    {"stop", Command::kStop, kChange, "exit now; calls in flight are cut"},
    {"completion", Command::kCompletion, kOther, "a completion script, on standard output", "bash or zsh", 1, 1,
     "bash zsh"},
};

}  // namespace sluice::ctl
