// EchoService: answers each call the way its request asks for, and names the server that did.
//
// It uses gRPC's callback interface, so a thousand slow calls cost no thread each.
// Thread safety: gRPC calls it from its own threads; the counters may be read from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "sluice/echo/v1/echo.grpc.pb.h"

namespace sluice::echo {

// Metadata that names the server, among the headers and the trailers of every answer.
inline constexpr char kBackendMetadata[] = "echo-backend";

class EchoService final : public v1::Echo::CallbackService {
 public:
  explicit EchoService(std::string name) : name_(std::move(name)) {}

  grpc::ServerUnaryReactor* Unary(grpc::CallbackServerContext* context, const v1::EchoRequest* request,
                                  v1::EchoReply* reply) override;
  grpc::ServerWriteReactor<v1::EchoReply>* ServerStream(grpc::CallbackServerContext* context,
                                                        const v1::EchoRequest* request) override;
  grpc::ServerReadReactor<v1::EchoRequest>* ClientStream(grpc::CallbackServerContext* context,
                                                         v1::EchoReply* reply) override;
  grpc::ServerBidiReactor<v1::EchoRequest, v1::EchoReply>* BidiStream(grpc::CallbackServerContext* context) override;

  const std::string& name() const { return name_; }
  // Calls that have reached the service, and those of them that the client cancelled or whose deadline passed.
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  uint64_t cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  // Calls whose reactor is still alive.
  int64_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  friend class Script;
  const std::string name_;
  // Statistics only: relaxed, nothing is published through them.
  std::atomic<uint64_t> calls_{0}, cancelled_{0};
  std::atomic<int64_t> in_flight_{0};
};

}  // namespace sluice::echo
