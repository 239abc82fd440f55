// GateBackend: an echo server whose unary calls wait at a gate until the test releases them: a backend that stalls when
// a test wants it to. A function of the test makes the response of each released call.
//
// Thread safety: every function from any thread. The answer function runs on gRPC's threads and the test's, several at
// once.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sluice/echo/v1/echo.grpc.pb.h"

namespace sluice::integration {

// Metadata by which a test's clients are told apart at the backend.
inline constexpr char kClientMetadata[] = "x-client";

class GateBackend {
 public:
  struct Call {
    grpc::CallbackServerContext* context;
    const echo::v1::EchoRequest* request;
    echo::v1::EchoReply* reply;
    uint64_t number;  // in the order of arrival, from 0
    // The client's metadata of that name; empty without it.
    std::string Metadata(const std::string& name) const;
  };
  // Fills the reply and the context's metadata.
  using Answer = std::function<grpc::Status(const Call&)>;
  struct Arrival {
    std::chrono::steady_clock::time_point at;
    std::string client;
  };

  // `on_arrival`, if given, runs when a call has come, before the gate.
  explicit GateBackend(std::string name, Answer answer = {}, std::function<void(const Call&)> on_arrival = {});
  ~GateBackend();
  GateBackend(const GateBackend&) = delete;
  GateBackend& operator=(const GateBackend&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  const std::string& name() const { return name_; }
  // For ProxyConfig.
  std::pair<std::string, std::string> endpoint() const { return {name_, address()}; }

  // Calls that arrive from now on wait at the gate.
  void Close();
  // Releases the waiting calls; later ones do not wait.
  void Open();
  // Releases the first `count` calls that wait; the gate stays as it is.
  void Release(size_t count);
  // gRPC's own health service of this server; null where it was not enabled before (EnableDefaultHealthCheckService).
  grpc::HealthCheckServiceInterface* health() { return server_->GetHealthCheckService(); }
  // Like a process that is killed: connections end, calls are reset, the port is closed.
  void Kill();

  uint64_t arrived() const;
  // At the gate now, of all clients or of one.
  size_t held() const;
  size_t held(const std::string& client) const;
  // Calls that left the gate because their client cancelled them.
  uint64_t cancelled() const;
  // The most calls that waited here at once.
  size_t peak() const;
  std::vector<Arrival> arrivals() const;

 private:
  class Service;
  class Reactor;
  grpc::Status AnswerTo(const Call& call) const;

  const std::string name_;
  const Answer answer_;
  const std::function<void(const Call&)> on_arrival_;

  mutable std::mutex mutex_;
  // Under mutex_. A reactor belongs to the thread that takes it out of the list and finishes it outside of the mutex.
  std::list<Reactor*> held_;
  bool open_ = true;
  uint64_t cancelled_ = 0;
  size_t peak_ = 0;
  std::vector<Arrival> arrivals_;

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace sluice::integration
