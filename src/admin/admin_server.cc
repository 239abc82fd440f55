// Start: 1. parse the address; 2. listen; 3. build the server; 4. report health, accept. Shutdown: 1. health says
// NOT_SERVING to its watchers; 2. the socket is closed, its file removed; 3. gRPC waits for handlers.
#include "admin/admin_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_posix.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <mutex>
#include <optional>

#include "admin/admin_service.h"
#include "admin/control_acceptor.h"
#include "admin/control_loop.h"
#include "admin/csds_service.h"
#include "admin/health_reporter.h"
#include "net/descriptor_reserve.h"

namespace sluice::admin {
namespace {

constexpr char kServiceName[] = "sluice.admin.v1.Admin";

// Both act on all of the process's later servers, which is harmless: the admin server is the only one in a daemon.
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
  // Calls are made in the order of the fields' life: the service outlives the server, the server the loop and what
  // runs on it.
  Access access;
  std::shared_ptr<GrpcCredentials> tls;  // null: none
  std::unique_ptr<grpc::Service> service, client_status;
  std::unique_ptr<grpc::Server> server;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections;
  ControlLoop loop;
  std::optional<ControlAcceptor> acceptor;
  std::optional<HealthReporter> reporter;
  std::string address;
  int listener = -1;  // the acceptor's
  std::once_flag shut_down;
};

AdminServer::AdminServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AdminServer::~AdminServer() { Shutdown(base::Nanos::zero()); }
std::string AdminServer::address() const { return impl_->address; }

base::Result<std::unique_ptr<AdminServer>> AdminServer::Start(const std::string& text, Backend& backend,
                                                              AdminSecurity security, AdminSocket from) {
  const base::Result<net::Address> address = net::Address::Parse(text);
  if (!address.ok()) return address.error();
  const bool local = address->kind() == net::Address::Kind::kUnix || address->is_loopback();
  if (!security.tls && !local) {
    return base::MakeError(base::ErrorKind::kInvalidArgument,
                           "admin address " + text +
                               ": every client that reaches it could change everything; allowed without "
                               "TLS: unix:/path, 127.0.0.1:port, [::1]:port");
  }
  auto impl = std::make_unique<Impl>(security.tls != nullptr, std::move(security.roles));
  impl->tls = std::move(security.tls);
  base::Result<net::ListenSocket> socket =
      from.passed ? base::Result<net::ListenSocket>(std::move(*from.passed))
                  : net::ListenSocket::Open(*address, {.backlog = kBacklog, .unix_mode = kSocketMode});
  if (!socket.ok()) return socket.error();
  socket->SetTenure(std::move(from.ours));
  impl->address = socket->address().ToString();
  impl->listener = socket->fd();

  EnablePluginsOnce();
  impl->service = MakeAdminService(backend, impl->access);
  grpc::ServerBuilder builder;
  SetLimits(builder);
  using External = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  impl->connections = builder.experimental().AddExternalConnectionAcceptor(
      External::FROM_FD, impl->tls != nullptr ? impl->tls->ForServer() : grpc::InsecureServerCredentials());
  builder.RegisterService(impl->service.get());
  impl->client_status = MakeCsdsService(backend, impl->access);
  builder.RegisterService(impl->client_status.get());
  impl->server = builder.BuildAndStart();
  if (impl->server == nullptr)
    return base::MakeError(base::ErrorKind::kInternal, "the admin RPC's server does not start");
  // gRPC says of a connection from an acceptor only what getpeername says, which is nothing on a Unix socket; of one by
  // its descriptor it says that.
  const bool by_descriptor = address->kind() == net::Address::Kind::kUnix && impl->tls == nullptr;
  const auto on_accept = [by_descriptor, impl = impl.get(), listener = socket->fd()](int fd) {
    if (by_descriptor) {
      impl->access.locals().Remember(fd);
      return grpc::AddInsecureChannelFromFd(impl->server.get(), fd);
    }
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails harmlessly on a Unix socket
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.listener_fd = listener;
    parameters.fd = fd;
    impl->connections->HandleNewConnection(&parameters);
  };
  impl->acceptor.emplace(impl->loop.context(), std::move(*socket), "admin RPC", net::DescriptorReserve::kOperatorsShare,
                         on_accept);
  grpc::HealthCheckServiceInterface* health = impl->server->GetHealthCheckService();
  SLUICE_CHECK(health != nullptr);
  impl->reporter.emplace(
      impl->loop.context(), kHealthPeriod, [&backend] { return backend.Ready(); },
      [health](bool ready) {
        health->SetServingStatus("", ready);
        health->SetServingStatus(kServiceName, ready);
      });
  impl->loop.Start();
  return std::unique_ptr<AdminServer>(new AdminServer(std::move(impl)));
}

int AdminServer::fd() const { return impl_->listener; }

void AdminServer::StopAccepting() {
  boost::asio::post(impl_->loop.context(), [impl = impl_.get()] { impl->acceptor.reset(); });
}

void AdminServer::SetRoles(Roles roles) { impl_->access.SetRoles(std::move(roles)); }

void AdminServer::Shutdown(base::Nanos grace) {
  std::call_once(impl_->shut_down, [&] {
    impl_->loop.Stop();
    // A Watch ends only when its client goes, so it would use up the grace; Health::Shutdown tells it NOT_SERVING
    // first.
    impl_->server->GetHealthCheckService()->Shutdown();
    impl_->acceptor.reset();
    const auto deadline =
        std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::microseconds>(grace);
    impl_->server->Shutdown(deadline);
    impl_->server->Wait();
  });
}

}  // namespace sluice::admin
