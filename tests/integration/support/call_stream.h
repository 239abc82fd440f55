// CallStream: calls of every kind with changing keys, one after the other on a thread of its own, until it is stopped.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "support/echo_call.h"

namespace sluice::integration {

class CallStream {
 public:
  explicit CallStream(const std::string& target)
      : stub_(echo::v1::Echo::NewStub(Connect(target))), thread_([this] { Run(); }) {}
  ~CallStream() { Stop(); }
  void Stop() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint64_t made() const { return made_; }
  // After Stop: the status of each call that failed; "" if all is well.
  std::string failed() const { return failed_; }

 private:
  void Run() {
    for (uint64_t i = 0; !over_; ++i) {
      grpc::ClientContext context;
      context.AddMetadata("x-key", std::to_string(i % 50));
      const Reply reply = Call(stub_.get(), kKinds[i % std::size(kKinds)], &context, {}, 2);
      ++made_;
      if (!reply.status.ok()) failed_ += Describe(reply.status) + "; ";
    }
  }

  const std::unique_ptr<echo::v1::Echo::Stub> stub_;
  std::atomic<bool> over_{false};
  std::atomic<uint64_t> made_{0};
  std::string failed_;
  std::thread thread_;
};

}  // namespace sluice::integration
