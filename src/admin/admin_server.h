// AdminServer: the control plane over gRPC: sluice.admin.v1.Admin, grpc.health.v1.Health and server
// reflection.
//
// It runs on gRPC's threads (at most kThreadsMax) and one of its own, apart from the workers that carry
// calls; a busy control plane takes CPU from calls, but no lock and no queue of theirs. Thread-safe. The
// Backend must outlive it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "admin/access.h"
#include "admin/backend.h"
#include "admin/tls_files.h"
#include "base/clock.h"

namespace sluice::admin {

// Who may connect and call. Without `tls`: whoever reaches the socket, which must be a Unix one or on loopback.
struct AdminSecurity {
  std::optional<TlsPaths> tls;
  Roles roles;  // with tls; who has none may only ask for health and reflection
};

class AdminServer {
 public:
  static constexpr int kThreadsMax = 16;  // handlers at once and gRPC's pollers; above it RESOURCE_EXHAUSTED
  static constexpr int kStreamsPerConnectionMax = 16;     // further RPCs on a connection wait in their client
  static constexpr int kRequestBytesMax = 1 << 20;        // above it RESOURCE_EXHAUSTED
  static constexpr size_t kMemoryBytesMax = 64ull << 20;  // of gRPC's buffers; connections that exceed it are cut
  static constexpr std::chrono::milliseconds kHealthPeriod{
      100};  // how long grpc.health may lag behind Backend::Ready()

  // `address`: "unix:/path" (mode 0600; a socket file that a dead process left is replaced, one in use is
  // kConflict) or "host:port" (port 0: any). kInvalidArgument (also: neither TLS nor loopback), kConflict, kIo.
  static base::Result<std::unique_ptr<AdminServer>> Start(const std::string& address, Backend& backend,
                                                          AdminSecurity security = {});
  // What Start would find wrong with the files of `tls`.
  static base::Status Check(const TlsPaths& tls);

  // As Shutdown without grace.
  ~AdminServer();

  // What clients dial: "unix:/path" or "host:port" with the real port.
  std::string address() const;

  // Those of its TLS that are in use, as Backend::ListCertificates has them; none without TLS. Never blocks on files.
  std::vector<CertificateView> ListCertificates() const;

  // For later RPCs, also on connections that are up. Of no consequence without TLS.
  void SetRoles(Roles roles);

  // New RPCs are refused, those running have `grace` to finish and are then cancelled; returns when all
  // handlers are done and a Unix socket's file is gone. Idempotent; must not be called from a handler (a
  // Backend function).
  void Shutdown(base::Nanos grace);

 private:
  struct Impl;
  explicit AdminServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::admin
