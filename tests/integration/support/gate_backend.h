// GateBackend: an echo server whose unary calls stand at a gate until the test lets them go: a backend that stalls when
// a test wants it to. What a call is answered, when it goes, is a function of the test.
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

  // Calls that come from now on stand at the gate.
  void Close();
  // They go, and those that come later go at once.
  void Open();
  // The `count` that came first go; the gate stays as it is.
  void Release(size_t count);
  // Like a process that is killed: connections end, calls are reset, nobody listens any more.
  void Kill();

  uint64_t arrived() const;
  // At the gate now, of all clients or of one.
  size_t held() const;
  size_t held(const std::string& client) const;
  // Gone from the gate because their client gave up.
  uint64_t cancelled() const;
  // The most that stood here at once.
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
  // Under mutex_. A reactor belongs to whoever takes it out of the list, who finishes it outside of the mutex.
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
