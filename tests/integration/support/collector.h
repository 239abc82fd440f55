// Collector: an OTLP collector in this process: keeps each span that it is sent, answers as it is told, or hangs.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "support/wait_until.h"

namespace sluice::integration {

namespace otlp = opentelemetry::proto;

// A span, and the service.name of its resource.
struct SeenSpan {
  otlp::trace::v1::Span span;
  std::string service;

  std::string Text(const std::string& key) const {
    for (const auto& attribute : span.attributes()) {
      if (attribute.key() == key) return attribute.value().string_value();
    }
    return "<none>";
  }
  int64_t Number(const std::string& key) const {
    for (const auto& attribute : span.attributes()) {
      if (attribute.key() == key) return attribute.value().int_value();
    }
    return -1;
  }
};

// Thread-safe.
class Collector final : public otlp::collector::trace::v1::TraceService::Service {
 public:
  // `address`: "127.0.0.1:0", or one that was in use before.
  explicit Collector(const std::string& address = "127.0.0.1:0") {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Collector() override {
    Hang(false);
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Exports are not answered until that is taken back, or the client has gone.
  void Hang(bool hangs) {
    std::lock_guard lock(mutex_);
    hangs_ = hangs;
    changed_.notify_all();
  }
  void AnswerWith(grpc::Status status, int64_t rejected = 0) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(status);
    rejected_ = rejected;
  }
  int exports() const { return exports_.load(); }
  std::vector<SeenSpan> spans() const {
    std::lock_guard lock(mutex_);
    return spans_;
  }
  // Waits for so many.
  std::vector<SeenSpan> Await(size_t count) const {
    if (!WaitUntil([&] { return spans().size() >= count; })) return {};
    return spans();
  }

 private:
  grpc::Status Export(grpc::ServerContext* context,
                      const otlp::collector::trace::v1::ExportTraceServiceRequest* request,
                      otlp::collector::trace::v1::ExportTraceServiceResponse* response) override {
    exports_.fetch_add(1);
    std::unique_lock lock(mutex_);
    while (hangs_ && !context->IsCancelled()) changed_.wait_for(lock, std::chrono::milliseconds(5));
    if (!answer_.ok()) return answer_;
    for (const auto& resource : request->resource_spans()) {
      std::string service;
      for (const auto& attribute : resource.resource().attributes()) {
        if (attribute.key() == "service.name") service = attribute.value().string_value();
      }
      for (const auto& scope : resource.scope_spans()) {
        for (const auto& span : scope.spans()) spans_.push_back({span, service});
      }
    }
    if (rejected_ > 0) response->mutable_partial_success()->set_rejected_spans(rejected_);
    return grpc::Status::OK;
  }

  int port_ = 0;
  std::atomic<int> exports_{0};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  grpc::Status answer_;
  int64_t rejected_ = 0;
  std::vector<SeenSpan> spans_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace sluice::integration
