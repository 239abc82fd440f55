// hostile_grpc_backend: an honest gRPC server, with libgrpc as it comes: its limits are its defaults. It answers each
// message of any method with that message, as the request's x-do says (README.md), and tells the harness on its output
// what it must not have seen: "VIOLATION ...".
#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>

#include "hostile/guard.h"

namespace sluice::hostile {
namespace {

std::string Text(grpc::string_ref ref) { return {ref.data(), ref.size()}; }

// What a request wants of its answer: x-do: "delay=30;status=5;trailer=100".
struct Order {
  int delay_ms = 0, status = 0, trailer_bytes = 0;
  std::string message;

  explicit Order(const std::string& text) {
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ';');) {
      const std::string value = part.substr(std::min(part.find('=') + 1, part.size()));
      if (part.starts_with("delay=")) delay_ms = std::min(std::atoi(value.c_str()), 5000);
      if (part.starts_with("status=")) status = std::atoi(value.c_str());
      if (part.starts_with("message=")) message = GuardUnescape(value);
      if (part.starts_with("trailer=")) trailer_bytes = std::min(std::atoi(value.c_str()), 1 << 17);
    }
  }
};

class Reactor : public grpc::ServerGenericBidiReactor {
 public:
  explicit Reactor(grpc::GenericCallbackServerContext* context) : context_(context), order_(Find("x-do")) {
    GuardFields fields;
    for (const auto& [name, value] : context->client_metadata()) fields.emplace_back(Text(name), Text(value));
    const std::string bad = GuardReason(context->method(), context->host(), fields, false);
    if (!bad.empty()) {
      std::printf("VIOLATION grpc has seen what it must not: %s\n", bad.c_str());
      std::fflush(stdout);
    }
    context->AddInitialMetadata("x-backend", "grpc");
    context->AddInitialMetadata("x-id", Find("x-id"));
    if (order_.trailer_bytes > 0)
      context->AddTrailingMetadata("x-long", std::string(static_cast<size_t>(order_.trailer_bytes), 't'));
    if (order_.delay_ms == 0) {
      StartRead(&message_);
      return;
    }
    alarm_.Set(std::chrono::system_clock::now() + std::chrono::milliseconds(order_.delay_ms),
               [this](bool) { StartRead(&message_); });
  }

  void OnReadDone(bool ok) override {
    if (ok && order_.status == 0) {
      StartWrite(&message_);
      return;
    }
    Finish(order_.status == 0 ? grpc::Status::OK
                              : grpc::Status(static_cast<grpc::StatusCode>(order_.status), order_.message));
  }
  void OnWriteDone(bool ok) override {
    if (ok)
      StartRead(&message_);
    else
      Finish(grpc::Status::CANCELLED);
  }
  void OnCancel() override {}
  void OnDone() override { delete this; }

 private:
  std::string Find(const char* name) const {
    const auto found = context_->client_metadata().find(name);
    return found == context_->client_metadata().end() ? std::string() : Text(found->second);
  }

  grpc::GenericCallbackServerContext* const context_;
  const Order order_;
  grpc::ByteBuffer message_;
  grpc::Alarm alarm_;
};

class Service : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Reactor(context);
  }
};

int Main() {
  Service service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  std::printf("listening on %d\n", port);
  std::fflush(stdout);
  // Lives as long as the harness: its end of the pipe closes with it.
  while (std::getchar() != EOF) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace sluice::hostile

int main() { return sluice::hostile::Main(); }
