// OtlpClient: sends one request at a time to a collector, over gRPC's library. A collector that is not there, or does
// not answer, costs no thread: an export ends by its timeout.
//
//   idle --Send--> sending --answered, failed, timeout or Cancel--> done --TakeResult--> idle
//
// Thread safety: one thread; `done` is called on a thread of gRPC's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tracing/reverse_buffer.h"

namespace sluice::tracing {

class OtlpClient {
 public:
  // A collector that answers an export with more has failed it.
  static constexpr int kResponseBytesMax = 64 * 1024;
  // Between two attempts to connect.
  static constexpr std::chrono::milliseconds kReconnectMin{500}, kReconnectMax{10000};

  struct Result {
    bool ok = false;
    bool retry = false;     // the same request may be sent again (OTLP, "Failures")
    uint64_t rejected = 0;  // spans that the collector did not take, of one that is ok
    std::string detail;     // for a person
  };

  // `target`: "host:port" or "unix:/path". `done`: may be called until the client and its last export are gone.
  OtlpClient(const std::string& target, std::function<void()> done);
  // Cancels; does not wait.
  ~OtlpClient();
  OtlpClient(const OtlpClient&) = delete;
  OtlpClient& operator=(const OtlpClient&) = delete;

  bool sending() const { return call_ != nullptr; }
  // Idle.
  void Send(std::shared_ptr<const ReverseBuffer> request, std::chrono::milliseconds timeout);
  // Set once the export has ended.
  std::optional<Result> TakeResult();
  void Cancel();

 private:
  struct Call;
  struct Channel;

  const std::function<void()> done_;
  std::unique_ptr<Channel> channel_;
  std::shared_ptr<Call> call_;
};

}  // namespace sluice::tracing
