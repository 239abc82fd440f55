// Access: which caller may call which RPC of the admin service.
//
// Without TLS (a Unix socket, loopback) every client that could connect may do everything: the file's mode, or being on
// this host, was the check. With TLS a caller is what its certificate says, and may do what the roles say: `write` is
// everything, `read` what changes nothing. A caller without a role may do nothing. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "admin/local_peers.h"
#include "net/tls/names.h"

namespace sluice::admin {

enum class Role : uint8_t { kRead, kWrite };

// Every RPC of sluice.admin.v1.Admin with the role it needs. A test compares it with the service's descriptor.
inline constexpr std::pair<std::string_view, Role> kMethodRoles[] = {
    {"GetServer", Role::kRead},          {"ListClusters", Role::kRead},    {"ListLimits", Role::kRead},
    {"ListCertificates", Role::kRead},   {"GetCache", Role::kRead},        {"GetXds", Role::kRead},
    {"GetMetrics", Role::kRead},         {"GetLogLevel", Role::kRead},     {"ChangeEndpoints", Role::kWrite},
    {"ChangeLimit", Role::kWrite},       {"PurgeCache", Role::kWrite},     {"Reload", Role::kWrite},
    {"SetLogLevel", Role::kWrite},       {"Drain", Role::kWrite},          {"Stop", Role::kWrite},
    {"SetEndpointHealth", Role::kWrite}, {"ListFailedCalls", Role::kRead}, {"ListHotKeys", Role::kRead},
    {"GetConfig", Role::kRead},          {"ListProcesses", Role::kRead},   {"Upgrade", Role::kWrite},
    {"ListFaults", Role::kRead},         {"AddFault", Role::kWrite},       {"RemoveFault", Role::kWrite},
    {"ListRoutes", Role::kRead},         {"GetExplanation", Role::kRead},
};
// kWrite for a name that is not in the table.
Role RoleOf(std::string_view method);

// Names as net::CheckAllowedName takes them.
struct Roles {
  std::vector<std::string> read, write;
};

// The client, as far as its connection tells.
struct Caller {
  bool has_certificate = false;
  net::TlsNames names;                    // of the certificate
  int64_t not_before = 0, not_after = 0;  // of the certificate, seconds since 1970
  std::string peer;                       // "ipv4:10.0.0.1:4711" as gRPC writes it, "unix: uid=1000 pid=4711"
  // For logs and errors: the certificate's name, or the peer.
  std::string ToString() const;
};

class Access {
 public:
  // `certificates`: the connections are TLS with client certificates.
  Access(bool certificates, Roles roles);
  void SetRoles(Roles roles);
  // Why `caller` may not call `method` at `now` (seconds since 1970): a sentence for its user; nullopt: it may.
  std::optional<std::string> Refusal(const Caller& caller, std::string_view method, int64_t now) const;
  // The processes that are connected through the Unix socket.
  LocalPeers& locals() { return locals_; }
  const LocalPeers& locals() const { return locals_; }

 private:
  std::shared_ptr<const Roles> roles() const;

  const bool certificates_;
  LocalPeers locals_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Roles> roles_;  // under mutex_
};

}  // namespace sluice::admin
