// EchoServer: EchoService on an address, with every limit of gRPC's that could get in a test's way lifted.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "sluice-echo/echo_service.h"

namespace sluice::echo {

class EchoServer {
 public:
  // Null when the address cannot be listened on. "127.0.0.1:0" takes any free port. Without credentials: plain text.
  static std::unique_ptr<EchoServer> Start(const std::string& address, const std::string& name,
                                           std::shared_ptr<grpc::ServerCredentials> credentials = nullptr);
  // Resets the calls that still run.
  ~EchoServer();

  int port() const { return port_; }
  const EchoService& service() const { return service_; }
  // Stops listening, lets calls finish for up to `grace_ms`, then resets them.
  void Shutdown(int grace_ms);

 private:
  explicit EchoServer(const std::string& name) : service_(name) {}

  EchoService service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace sluice::echo
