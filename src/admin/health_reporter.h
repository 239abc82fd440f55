// HealthReporter: asks whether the daemon is ready, again and again, and tells when the answer changes.
//
// grpc.health.v1 is push: its Watch streams need to be told. The Backend is pull. A timer lies between them, so that
// calls need not know of watchers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace boost::asio {
class io_context;
}

namespace sluice::admin {

class HealthReporter {
 public:
  // `tell` is called once before the constructor returns, then on the context's thread at each change.
  HealthReporter(boost::asio::io_context& context, std::chrono::milliseconds period, std::function<bool()> ask,
                 std::function<void(bool)> tell);
  // When no handler of the context runs, and none will.
  ~HealthReporter();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::admin
