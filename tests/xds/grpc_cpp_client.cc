// A client of gRPC C++ with xDS, told by lines of JSON on stdin what to do; answers each with a line.
//   {"op": "spread", "target": T, "calls": N}    how many calls each backend has had, and how many failed
//   {"op": "lists"}                              what the client has accepted, as CSDS tells it: a ClientConfig in
//   base64
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/escaping.h"

namespace {

using google::protobuf::Struct;

constexpr int kParallel = 32;
constexpr std::chrono::seconds kDeadline{30};
const char kMethod[] = "/sluice.test.v1.Name/Get";

// Calls by one channel, kParallel at a time.
class Spread {
 public:
  Spread(std::shared_ptr<grpc::Channel> channel, int calls) : stub_(std::move(channel)), left_(calls) {}

  Struct Run() {
    const int first = std::min(kParallel, left_);
    {
      std::lock_guard lock(mutex_);
      left_ -= first;
      under_way_ = first;
    }
    for (int i = 0; i < first; ++i) Start();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return under_way_ == 0; });
    Struct out;
    auto& seen = *(*out.mutable_fields())["seen"].mutable_struct_value()->mutable_fields();
    for (const auto& [name, count] : seen_) seen[name].set_number_value(count);
    (*out.mutable_fields())["failed"].set_number_value(failed_);
    if (failed_ > 0) (*out.mutable_fields())["error"].set_string_value(error_);
    return out;
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer request, response;
  };

  void Start() {
    auto call = std::make_shared<Call>();
    call->context.set_deadline(std::chrono::system_clock::now() + kDeadline);
    call->request = grpc::ByteBuffer(nullptr, 0);
    stub_.UnaryCall(&call->context, kMethod, grpc::StubOptions(), &call->request, &call->response,
                    [this, call](const grpc::Status& status) { Ended(*call, status); });
  }
  void Ended(const Call& call, const grpc::Status& status) {
    std::unique_lock lock(mutex_);
    if (status.ok()) {
      grpc::Slice name;
      if (call.response.DumpToSingleSlice(&name).ok()) ++seen_[std::string(name.begin(), name.end())];
    } else {
      ++failed_;
      error_ = std::to_string(status.error_code()) + ": " + status.error_message();
    }
    if (left_ > 0) {
      --left_;
      lock.unlock();
      return Start();
    }
    if (--under_way_ == 0) done_.notify_one();
  }

  grpc::GenericStub stub_;
  std::mutex mutex_;
  std::condition_variable done_;
  int left_, under_way_ = 0, failed_ = 0;
  std::map<std::string, int> seen_;
  std::string error_;
};

Struct Lists() {
  const grpc_slice dump = grpc_dump_xds_configs();
  const std::string bytes(reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(dump)), GRPC_SLICE_LENGTH(dump));
  grpc_slice_unref(dump);
  Struct out;
  (*out.mutable_fields())["config"].set_string_value(absl::Base64Escape(bytes));
  return out;
}

}  // namespace

int main() {
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels;
  for (std::string line; std::getline(std::cin, line);) {
    Struct request, answer;
    if (!google::protobuf::util::JsonStringToMessage(line, &request).ok()) return 2;
    const auto& fields = request.fields();
    const std::string op = fields.count("op") != 0 ? fields.at("op").string_value() : "";
    if (op == "spread") {
      std::shared_ptr<grpc::Channel>& channel = channels[fields.at("target").string_value()];
      if (channel == nullptr) {
        channel = grpc::CreateChannel(fields.at("target").string_value(), grpc::InsecureChannelCredentials());
      }
      answer = Spread(channel, static_cast<int>(fields.at("calls").number_value())).Run();
    } else if (op == "lists") {
      answer = Lists();
    } else {
      return 2;
    }
    std::string text;
    if (!google::protobuf::util::MessageToJsonString(answer, &text).ok()) return 2;
    std::cout << text << std::endl;
  }
  return 0;
}
