// AdminServer: the control plane over gRPC: sluice.admin.v1.Admin, grpc.health.v1.Health and server reflection.
//
// It runs on gRPC's threads (at most kThreadsMax) and one of its own, apart from the workers that carry
// calls; a busy control plane takes CPU from calls, but no lock and no queue of theirs. Thread-safe. The
// Backend must outlive it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "admin/access.h"
#include "admin/backend.h"
#include "admin/grpc_credentials.h"
#include "base/clock.h"
#include "net/listen_socket.h"

namespace sluice::admin {

// Access to the admin RPC. Without `tls` every process that reaches the socket has it: it must be a Unix one or on
// loopback.
struct AdminSecurity {
  std::shared_ptr<GrpcCredentials> tls;
  Roles roles;  // with tls; a client without one may only ask for health and reflection
};

// Where it accepts from.
struct AdminSocket {
  std::optional<net::ListenSocket> passed;        // one that listens at the address already; none: a new one
  std::shared_ptr<const std::atomic<bool>> ours;  // of net::ListenSocket::SetTenure; null: for ever
};

class AdminServer {
 public:
  static constexpr int kThreadsMax = 16;  // handlers at once and gRPC's pollers; above it RESOURCE_EXHAUSTED
  static constexpr int kStreamsPerConnectionMax = 16;     // further RPCs on a connection wait in their client
  static constexpr int kRequestBytesMax = 1 << 20;        // above it RESOURCE_EXHAUSTED
  static constexpr size_t kMemoryBytesMax = 64ull << 20;  // of gRPC's buffers; connections that exceed it are cut
  // How long grpc.health may lag behind Backend::Ready().
  static constexpr std::chrono::milliseconds kHealthPeriod{100};
  static constexpr int kBacklog = 128;
  static constexpr uint32_t kSocketMode = 0600;  // of a Unix socket

  // `address`: "unix:/path" (a socket file that a dead process left is replaced) or "ip:port" (port 0: any).
  // kInvalidArgument (also: neither TLS nor loopback), kConflict (in use), kIo.
  static base::Result<std::unique_ptr<AdminServer>> Start(const std::string& address, Backend& backend,
                                                          AdminSecurity security = {}, AdminSocket socket = {});
  // As Shutdown without grace.
  ~AdminServer();

  // What clients dial: "unix:/path" or "ip:port" with the real port.
  std::string address() const;
  // Of the socket that it accepts from, for another process.
  int fd() const;
  // Another process has the socket from now on: no further connection is accepted here, those that are up go on.
  void StopAccepting();

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
