// Config: the whole configuration as one value, from YAML. Parsing builds it aside; nothing starts from a bad
// one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config_error.h"
#include "config/expand.h"
#include "config/named_file.h"
#include "discovery/options.h"
#include "proxy/options.h"
#include "runtime/options.h"
#include "upstream/options.h"

namespace sluice::config {

enum class LogLevel : uint8_t { kTrace, kDebug, kInfo, kWarn, kError, kOff };
inline constexpr std::array<std::string_view, 6> kLogLevels = {"trace", "debug", "info", "warn", "error", "off"};
inline std::string_view ToString(LogLevel level) { return kLogLevels[static_cast<size_t>(level)]; }

enum class LogFormat : uint8_t { kText, kJson };
inline constexpr std::array<std::string_view, 2> kLogFormats = {"text", "json"};

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  std::string path;  // empty: stderr
  LogFormat format = LogFormat::kText;
  bool operator==(const LogOptions&) const = default;
};

// PEM files; all three or none. In the configuration relative to its directory; here, as they are opened.
struct AdminTlsOptions {
  std::string certificate, key, client_ca;
  bool enabled() const { return !certificate.empty(); }
  bool operator==(const AdminTlsOptions&) const = default;
};

// Names of client certificates (net::CheckAllowedName) that may look, and those that may do everything.
struct AdminRoleOptions {
  std::vector<std::string> read, write;
  bool operator==(const AdminRoleOptions&) const = default;
};

// AdminOptions::grpc: a socket in a folder of the process's own, as its environment names one (server/admin_address.h).
inline constexpr std::string_view kAdminAuto = "auto";

struct AdminOptions {
  // Admin gRPC: "unix:/path" (made with mode 0600), a TCP address, of which one that is not loopback needs tls, or
  // kAdminAuto. Empty: no admin RPC.
  std::string grpc{kAdminAuto};
  AdminTlsOptions tls;     // of grpc
  AdminRoleOptions roles;  // with tls, at least one name
  // HTTP/1.1 port for /metrics, /healthz, /readyz. Empty: none.
  std::string http;
  bool operator==(const AdminOptions&) const = default;
};

struct Config {
  std::vector<proxy::ListenerOptions> listeners;
  std::vector<upstream::ClusterOptions> clusters;
  // By cluster: the source that keeps its list. Clusters without one are not in it.
  std::map<std::string, discovery::DiscoveryOptions> discovery;
  // The control plane of those that follow xDS, as its bootstrap file says. Read again with each reload.
  discovery::XdsBootstrap xds;
  // The file that names it, as it was opened. Empty: the environment does, or none is needed.
  std::string xds_bootstrap;
  // What the process tells others of itself.
  std::vector<discovery::AnnounceOptions> announce;
  std::vector<proxy::JwtProviderOptions> jwt;
  std::vector<proxy::RouteOptions> routes;
  runtime::RuntimeOptions runtime;
  AdminOptions admin;
  LogOptions log;
  proxy::AccessLogOptions access_log;
  proxy::TracingOptions tracing;
  proxy::ForwardingOptions forwarding;
  proxy::InsightOptions insight;
  // Calls under way in the whole process.
  limits::ConcurrencyOptions concurrency;
  proxy::CacheOptions cache;
  // What peers may make the process hold: buffers, calls, headers; not what is cached (proxy/downstream/overload.h).
  uint64_t buffered_bytes_max = uint64_t{1} << 30;
  // Client connections over all listeners; more wait in the kernel's queues.
  uint32_t connections_max = 100000;
  // File made by `protoc --include_imports --descriptor_set_out`: names of message fields, methods without side
  // effects. Empty: none. In the file relative to its directory; here, as it was opened. Read again with each reload.
  std::string descriptor_set;
  // Endpoint lists changed by RPC are kept here over a restart. Empty: they are not.
  std::string state_file;
  // SIGTERM: calls may go on for this long before the process ends. Of that time, connections and calls are accepted
  // for drain_delay as before, while the process says already that it is not ready.
  std::chrono::milliseconds drain_timeout{30000};
  std::chrono::milliseconds drain_delay{0};
  // A new process has taken over: the old one tells its connections to go one after the other within this time.
  std::chrono::milliseconds drain_spread{100};
  // Secret of the fleet that seeds key hashes, so that a client cannot aim at one backend. All proxies of a
  // service share it.
  std::string hash_seed;
  bool operator==(const Config&) const = default;
};

// All errors, in the order of the files, and a default Config; or none and a whole one.
struct ParseResult {
  Config config;
  std::vector<ConfigError> errors;
  // What is legal and unwise. Not looked for where there are errors.
  std::vector<ConfigError> warnings;
  // What must be there besides (check_files.h), in the order of the files.
  std::vector<NamedFile> named;
  // The first section that needs the control plane of xDS, without a message. nullopt: none does.
  std::optional<ConfigError> needs_xds;
  // The configuration's own file, then those that it includes.
  std::vector<std::string> files;
  bool ok() const { return errors.empty(); }
};

// What a configuration is made of besides its own text.
struct Inputs {
  Variables variables;  // empty: none is set
  // The text of an included file, one byte above kFileBytesMax at most. Empty: a configuration may include none.
  std::function<base::Result<std::string>(const std::string& path)> file;
};
// The environment of the process, which does not change while it runs, and the system's files. They block.
Inputs SystemInputs();

// `file` is the name to show in errors; its directory is where relative names of files are looked for.
// `descriptor_set` and `xds.bootstrap` are read. Without `inputs`: no variable, no other file.
ParseResult Parse(std::string_view yaml, std::string_view file, const Inputs& inputs = {});
// Reads and parses with SystemInputs; a file that cannot be read is one error. What a cluster needs of xDS and the file
// does not name is looked for in the environment.
ParseResult Load(const std::string& path);

// The endpoints of a file with a list of them, in its order. kInvalidArgument: all errors, a line each. Blocks.
base::Result<std::vector<upstream::EndpointOptions>> LoadEndpoints(const std::string& path);

// The endpoint that a value in etcd says: "host:port", "host:port@weight", or JSON with the keys of an endpoint. Its
// name is `name`, unless the value has another. kInvalidArgument: what is wrong, and what is allowed. Any thread.
base::Result<upstream::EndpointOptions> ParseEndpointValue(std::string_view name, std::string_view value);

// What a reload cannot change in a running process: one message for each difference ("workers: ... needs a
// restart").
std::vector<std::string> RestartOnlyChanges(const Config& running, const Config& wanted);

}  // namespace sluice::config
