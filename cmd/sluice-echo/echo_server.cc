// EchoServer: the gRPC server around the service.
#include "sluice-echo/echo_server.h"

#include <grpcpp/server_builder.h>

#include <chrono>

namespace sluice::echo {

std::unique_ptr<EchoServer> EchoServer::Start(const std::string& address, const std::string& name,
                                              std::shared_ptr<grpc::ServerCredentials> credentials) {
  if (credentials == nullptr) credentials = grpc::InsecureServerCredentials();
  std::unique_ptr<EchoServer> echo(new EchoServer(name));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, credentials, &echo->port_);
  builder.RegisterService(&echo->service_);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  // Two servers on one port would share its connections silently instead of the second one failing.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 1 << 20);
  // A proxy may ping as often as it likes.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  echo->server_ = builder.BuildAndStart();
  if (!echo->server_ || (echo->port_ == 0 && address.rfind("unix:", 0) != 0)) return nullptr;
  return echo;
}

EchoServer::~EchoServer() {
  if (server_) Shutdown(0);
}

void EchoServer::Shutdown(int grace_ms) {
  server_->Shutdown(std::chrono::system_clock::now() + std::chrono::milliseconds(grace_ms));
}

}  // namespace sluice::echo
