// restart_backend: what the proxies call. Holds each unary call for a while, echoes each message of a stream, and
// counts how many unary calls it has at once: over all processes of a proxy, as only a backend sees.
//
//   restart_backend --listen 127.0.0.1:0 --hold-ms 5 --limit 8
//
// Prints "listening PORT". The line "go" on its standard input begins the count; at the input's end it prints the
// counts as one line of JSON and exits.
#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <iostream>
#include <mutex>

#include "json.h"

namespace sluice::bench {
namespace {

// Calls under way. One lock for all: the figures have to belong together.
class Count {
 public:
  explicit Count(uint64_t limit) : limit_(limit) {}
  void Begin() {
    std::lock_guard lock(mutex_);
    ++calls_;
    ++now_;
    if (now_ > max_) max_ = now_;
    if (limit_ != 0 && now_ > limit_) ++above_;
  }
  void End() {
    std::lock_guard lock(mutex_);
    --now_;
  }
  void Stream() {
    std::lock_guard lock(mutex_);
    ++streams_;
  }
  void Restart() {
    std::lock_guard lock(mutex_);
    calls_ = above_ = streams_ = 0;
    max_ = now_;
  }
  std::string Json() {
    std::lock_guard lock(mutex_);
    return "{\"calls\": " + std::to_string(calls_) + ", \"streams\": " + std::to_string(streams_) +
           ", \"concurrent_max\": " + std::to_string(max_) + ", \"above_limit\": " + std::to_string(above_) + "}";
  }

 private:
  const uint64_t limit_;  // 0: none
  std::mutex mutex_;      // guards all below
  uint64_t calls_ = 0, now_ = 0, max_ = 0, above_ = 0, streams_ = 0;
};

// A unary call, which the generic service sees as a stream of one message.
class HeldCall final : public grpc::ServerGenericBidiReactor {
 public:
  HeldCall(Count* count, std::chrono::milliseconds hold) : count_(count), hold_(hold) {
    count_->Begin();
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::CANCELLED);
    // A cancelled call keeps its place until the time is over, as work at a real backend would.
    alarm_.Set(std::chrono::system_clock::now() + hold_, [this](bool) {
      count_->End();  // before the answer leaves: the proxy may send the next call as soon as it has it
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    });
  }
  void OnDone() override { delete this; }

 private:
  void End(const grpc::Status& status) {
    count_->End();
    Finish(status);
  }

  Count* const count_;
  const std::chrono::milliseconds hold_;
  grpc::ByteBuffer message_;
  grpc::Alarm alarm_;
};

class EchoStream final : public grpc::ServerGenericBidiReactor {
 public:
  explicit EchoStream(Count* count) {
    count->Stream();
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override { ok ? StartWrite(&message_) : Finish(grpc::Status::OK); }
  void OnWriteDone(bool ok) override { ok ? StartRead(&message_) : Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  Service(Count* count, std::chrono::milliseconds hold) : count_(count), hold_(hold) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    if (context->method().find("Stream") != std::string::npos) return new EchoStream(count_);
    return new HeldCall(count_, hold_);
  }

 private:
  Count* const count_;
  const std::chrono::milliseconds hold_;
};

int Main(const Options& options) {
  Count count(static_cast<uint64_t>(options.Number("limit", 0)));
  Service service(&count, std::chrono::milliseconds(static_cast<int64_t>(options.Number("hold-ms", 5))));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.Text("listen", "127.0.0.1:0"), grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  const auto server = builder.BuildAndStart();
  if (!server || port == 0) {
    std::cerr << "restart_backend: cannot listen\n";
    return 1;
  }
  std::cout << "listening " << port << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "go") count.Restart();
  }
  std::cout << count.Json() << std::endl;
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::Main(sluice::bench::Options(argc, argv)); }
