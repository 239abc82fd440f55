// Options of a cluster's discovery: the source that its endpoint list is kept by; and of announcements. Parsed by
// config, with the ranges in option_table.h; documented in config/reference.yaml and docs/discovery.md.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/xds_options.h"
#include "upstream/options.h"

namespace sluice::discovery {

enum class SourceKind : uint8_t { kNone, kFile, kDns, kEtcd, kXds };

// A YAML or JSON file with a list `endpoints`.
struct FileOptions {
  std::string path;  // in the configuration relative to its directory; here, as it is opened
  bool operator==(const FileOptions&) const = default;
};

enum class DnsRecords : uint8_t {
  kAddress,  // A and AAAA, all with `port`
  kSrv,      // SRV: hosts with ports, weights and priorities
};
inline constexpr std::array<std::string_view, 2> kDnsRecords = {"address", "srv"};
enum class DnsMode : uint8_t {
  kAll,  // every address is an endpoint
  kOne,  // one of them: a virtual address, behind which something else balances
};
inline constexpr std::array<std::string_view, 2> kDnsModes = {"all", "one"};

// A name in the DNS.
struct DnsOptions {
  std::string name;
  uint32_t port = 0;
  DnsRecords records = DnsRecords::kAddress;
  DnsMode mode = DnsMode::kAll;
  // "10.0.0.2" or "10.0.0.2:5353"; none: the system's.
  std::vector<std::string> servers;

  // "users.internal:50051"; of SRV without the port.
  std::string NamePort() const;
  bool operator==(const DnsOptions&) const = default;
};
// Of one source.
inline constexpr size_t kDnsServersMax = 8;

// A cluster of etcd, and the keys there that are meant. Files are read whenever a connection is opened.
struct EtcdOptions {
  std::vector<std::string> servers;  // host:port; 1..kEtcdServersMax
  std::string prefix;                // ends with /
  // Without: plaintext. Without `ca` the system's authorities are trusted. PEM files.
  bool tls = false;
  std::string ca, certificate, key;
  std::string server_name;  // that the servers' certificates must have; empty: that of the address
  // Both or none. The file has the password, and may have the end of a line behind it.
  std::string user, password_file;
  bool operator==(const EtcdOptions&) const = default;
};
inline constexpr size_t kEtcdServersMax = 16;
inline constexpr size_t kEtcdPrefixBytesMax = 1024;

// What becomes of a change by the admin RPC.
enum class RpcRule : uint8_t {
  kRefuse,    // it is refused, with the source's name
  kOverride,  // it is in force until KIND_RESET; what the source says meanwhile is kept aside
};
inline constexpr std::array<std::string_view, 2> kRpcRules = {"refuse", "override"};

struct DiscoveryOptions {
  SourceKind kind = SourceKind::kNone;
  FileOptions file;
  DnsOptions dns;
  // An answer without endpoints is believed when the source has said so for this long.
  std::chrono::milliseconds empty_after{30000};
  // A list that would move more than this share of the keys must be seen twice.
  double moved_max = 0.5;
  // The process is not ready before the cluster has had a list, or this long after its start.
  std::chrono::milliseconds ready_timeout{10000};
  RpcRule changes_by_rpc = RpcRule::kRefuse;
  EtcdOptions etcd;
  XdsOptions xds{};
  // Not configured as such: the cluster's ring goes by the order of its list (ring: xds), so the source's is kept.
  bool ordered = false;

  bool enabled() const { return kind != SourceKind::kNone; }
  // "file /etc/sluice/users.yaml", "dns:///users.internal:50051", "dns://10.0.0.2/users.internal (srv)": for people,
  // and equal only where the source is the same.
  std::string Name() const;
  bool operator==(const DiscoveryOptions&) const = default;
};

// An endpoint of this process, that others find at a key in etcd.
struct AnnounceOptions {
  EtcdOptions etcd;
  // As others reach it; its name is the key below the prefix.
  upstream::EndpointOptions endpoint;
  // The key outlives the process by so much, where it ends without taking it back. Rounded up to whole seconds.
  std::chrono::milliseconds lease{10000};
  bool operator==(const AnnounceOptions&) const = default;
};
inline constexpr size_t kAnnouncementsMax = 16;

}  // namespace sluice::discovery
