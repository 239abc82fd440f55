// Start: 1. parse the address, read the certificates; 2. claim a Unix path; 3. bind; 4. set the file's mode; 5. build
// the server, accept; 6. report health. Shutdown: 1. health says NOT_SERVING to its watchers; 2. nothing is accepted
// any more, the socket's file is removed; 3. gRPC waits for handlers.
#include "admin/admin_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>

#include <mutex>

#include "admin/admin_service.h"
#include "admin/health_reporter.h"
#include "admin/listen_address.h"
#include "admin/rpc_listener.h"
#include "admin/unix_socket.h"

namespace sluice::admin {
namespace {

constexpr char kServiceName[] = "sluice.admin.v1.Admin";

// Both act on all of the process's later servers, which is harmless: the admin server is the only one in a
// daemon.
void EnablePluginsOnce() {
  static const bool done = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    return true;
  }();
  (void)done;
}

void SetLimits(grpc::ServerBuilder& builder) {
  grpc::ResourceQuota quota("sluice-admin");
  quota.SetMaxThreads(AdminServer::kThreadsMax);
  quota.Resize(AdminServer::kMemoryBytesMax);
  builder.SetResourceQuota(quota);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  builder.SetMaxReceiveMessageSize(AdminServer::kRequestBytesMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, AdminServer::kStreamsPerConnectionMax);
}

}  // namespace

struct AdminServer::Impl {
  Impl(bool certificates, Roles roles) : access(certificates, std::move(roles)) {}
  // Calls are made in the order of the fields' life: the service outlives the server, the server the
  // reporter.
  Access access;
  std::unique_ptr<TlsFiles> tls;  // null: none
  std::unique_ptr<grpc::Service> service;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;
  std::unique_ptr<RpcListener> listener;  // ends before those that it tells
  std::unique_ptr<HealthReporter> reporter;
  std::string address;
  std::once_flag shut_down;
};

AdminServer::AdminServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AdminServer::~AdminServer() { Shutdown(base::Nanos::zero()); }
std::string AdminServer::address() const { return impl_->address; }

base::Status AdminServer::Check(const TlsPaths& tls) {
  const auto files = TlsFiles::Open(tls);
  return files.ok() ? base::Ok() : base::Status(files.error());
}

base::Result<std::unique_ptr<AdminServer>> AdminServer::Start(const std::string& text, Backend& backend,
                                                              AdminSecurity security) {
  base::Result<ListenAddress> address = ParseListenAddress(text);
  if (!address.ok()) return address.error();
  if (!security.tls && !address->is_local()) {
    return base::MakeError(base::ErrorKind::kInvalidArgument,
                           "admin address " + text +
                               ": everybody who reaches it could change everything; allowed without "
                               "TLS: unix:/path, 127.0.0.1:port, [::1]:port");
  }
  auto impl = std::make_unique<Impl>(security.tls.has_value(), std::move(security.roles));
  if (security.tls) {
    base::Result<std::unique_ptr<TlsFiles>> files = TlsFiles::Open(*security.tls);
    if (!files.ok()) return files.error();
    impl->tls = std::move(*files);
  }
  std::optional<UnixSocketClaim> claim;  // until bound
  if (address->is_unix()) {
    base::Result<UnixSocketClaim> claimed = UnixSocketClaim::Claim(address->path);
    if (!claimed.ok()) return claimed.error();
    claim.emplace(std::move(*claimed));
  }

  base::Result<std::unique_ptr<RpcListener>> listener = RpcListener::Open(std::move(*address));
  if (!listener.ok()) return listener.error();
  impl->listener = std::move(*listener);
  if (claim) {
    if (base::Status mode = claim->SetMode(); !mode.ok()) return mode.error();
    claim.reset();
  }
  impl->address = impl->listener->address().ToString();

  EnablePluginsOnce();
  impl->service = MakeAdminService(backend, impl->access);
  grpc::ServerBuilder builder;
  SetLimits(builder);
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  impl->connections = builder.experimental().AddExternalConnectionAcceptor(
      External::FROM_FD, impl->tls != nullptr ? impl->tls->Credentials() : grpc::InsecureServerCredentials());
  builder.RegisterService(impl->service.get());
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr)
    return base::MakeError(base::ErrorKind::kInternal, "the admin RPC's server does not start");
  impl->listener->Start([connections = impl->connections.get()](int listening, int fd) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listening;
    parameters.fd = fd;
    connections->HandleNewConnection(&parameters);
  });
  grpc::HealthCheckServiceInterface* health = impl->server->GetHealthCheckService();
  SLUICE_CHECK(health != nullptr);
  impl->reporter = std::make_unique<HealthReporter>(
      kHealthPeriod,
      [&backend, tls = impl->tls.get(), turn = 0]() mutable {
        if (tls != nullptr && ++turn % (TlsFiles::kPeriod / kHealthPeriod) == 0) tls->Refresh();
        return backend.Ready();
      },
      [health](bool ready) {
        health->SetServingStatus("", ready);
        health->SetServingStatus(kServiceName, ready);
      });
  return std::unique_ptr<AdminServer>(new AdminServer(std::move(impl)));
}

std::vector<CertificateView> AdminServer::ListCertificates() const {
  return impl_->tls == nullptr ? std::vector<CertificateView>() : impl_->tls->List();
}

void AdminServer::SetRoles(Roles roles) { impl_->access.SetRoles(std::move(roles)); }

void AdminServer::Shutdown(base::Nanos grace) {
  std::call_once(impl_->shut_down, [&] {
    impl_->reporter.reset();
    // A Watch ends only when its client goes, so it would use up the grace; Health::Shutdown tells it
    // NOT_SERVING first.
    impl_->server->GetHealthCheckService()->Shutdown();
    impl_->listener.reset();
    const auto deadline =
        std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::microseconds>(grace);
    impl_->server->Shutdown(deadline);
    impl_->server->Wait();
  });
}

}  // namespace sluice::admin
