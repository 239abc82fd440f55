// RunClient: threads with gRPC's synchronous API, spread over separate connections.
#include "client.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/echo/v1/echo.grpc.pb.h"

namespace sluice::echo {

namespace {

using Clock = std::chrono::steady_clock;
using v1::EchoReply;
using v1::EchoRequest;

constexpr const char* kKinds[] = {"unary", "server", "client", "bidi"};

std::shared_ptr<grpc::Channel> Connect(const std::string& target) {
  grpc::ChannelArguments arguments;
  // Without it all channels to one target share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // what fails shall be seen
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// One call: its status, with the backend's name in `backend`. An answer that is not what was asked for is a
// failure too.
class Caller {
 public:
  Caller(const ClientOptions& options, v1::Echo::Stub* stub) : options_(options), stub_(stub) {
    request_.set_payload(std::string(options.payload_bytes, 'x'));
    request_.set_reply_count(options.messages);
    request_.set_delay_ms(static_cast<uint32_t>(options.delay.count()));
  }

  grpc::Status Call(const std::string& kind, const std::string& key, std::string* backend) {
    grpc::ClientContext context;
    context.AddMetadata("x-key", key);
    context.set_deadline(std::chrono::system_clock::now() + options_.timeout);
    context.set_wait_for_ready(true);
    replies_ = 0;
    backend_.clear();
    grpc::Status status;
    uint64_t expected = options_.messages;
    if (kind == "unary") {
      status = Unary(&context);
      expected = 1;
    } else if (kind == "server") {
      status = ServerStream(&context);
    } else if (kind == "client") {
      status = ClientStream(&context);
      expected = 1;
    } else {
      status = BidiStream(&context);
    }
    *backend = backend_;
    if (status.ok() && replies_ != expected) {
      return grpc::Status(grpc::StatusCode::DATA_LOSS,
                          "OK, but " + std::to_string(replies_) + " of " + std::to_string(expected) + " replies came");
    }
    return status;
  }

 private:
  void Took(const EchoReply& reply) {
    ++replies_;
    backend_ = reply.backend();
  }

  grpc::Status Unary(grpc::ClientContext* context) {
    EchoReply reply;
    grpc::Status status = stub_->Unary(context, request_, &reply);
    if (status.ok()) Took(reply);
    return status;
  }

  grpc::Status ServerStream(grpc::ClientContext* context) {
    auto reader = stub_->ServerStream(context, request_);
    EchoReply reply;
    while (reader->Read(&reply)) Took(reply);
    return reader->Finish();
  }

  grpc::Status ClientStream(grpc::ClientContext* context) {
    EchoReply reply;
    auto writer = stub_->ClientStream(context, &reply);
    for (uint64_t i = 0; i < options_.messages && writer->Write(request_); ++i) {
    }
    writer->WritesDone();
    grpc::Status status = writer->Finish();
    if (!status.ok()) return status;
    Took(reply);
    if (reply.received_messages() == options_.messages) return status;
    return grpc::Status(grpc::StatusCode::DATA_LOSS, "OK, but not all messages arrived");
  }

  grpc::Status BidiStream(grpc::ClientContext* context) {
    auto stream = stub_->BidiStream(context);
    EchoReply reply;
    for (uint64_t i = 0; i < options_.messages && stream->Write(request_) && stream->Read(&reply); ++i) Took(reply);
    stream->WritesDone();
    while (stream->Read(&reply)) Took(reply);
    return stream->Finish();
  }

  const ClientOptions& options_;
  v1::Echo::Stub* const stub_;
  EchoRequest request_;
  uint64_t replies_ = 0;
  std::string backend_;
};

std::string CodeName(grpc::StatusCode code) {
  static constexpr const char* kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < std::size(kNames) ? kNames[index] : "code " + std::to_string(code);
}

}  // namespace

void RunClient(const ClientOptions& options, const std::atomic<bool>* stop, Tally* tally) {
  std::vector<std::unique_ptr<v1::Echo::Stub>> stubs;
  for (uint64_t i = 0; i < options.connections; ++i) stubs.push_back(v1::Echo::NewStub(Connect(options.target)));

  const Clock::time_point start = Clock::now();
  std::atomic<uint64_t> next{0};  // number of the next call; only counted with, so relaxed
  const auto run = [&](uint64_t thread) {
    Caller caller(options, stubs[thread % stubs.size()].get());
    while (!stop->load(std::memory_order_relaxed)) {
      const uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
      if (options.calls != 0 && number >= options.calls) return;
      if (options.rate != 0)
        std::this_thread::sleep_until(start + std::chrono::nanoseconds(std::nano::den / options.rate) * number);
      if (options.duration.count() != 0 && Clock::now() - start >= options.duration) return;
      std::string key = std::to_string(number % options.keys);
      key.insert(0, 4 - std::min<size_t>(4, key.size()), '0').insert(0, "key-");
      // Each key meets every kind in turn.
      const std::string kind = options.kind == "all" ? kKinds[(number + number / options.keys) % 4] : options.kind;
      std::string backend;
      const grpc::Status status = caller.Call(kind, key, &backend);
      if (status.ok()) {
        tally->Answered(key, backend);
      } else {
        tally->Failed(CodeName(status.error_code()) + ": " + status.error_message());
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < options.concurrency; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice::echo
