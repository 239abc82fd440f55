// AdsServer: a control plane in the test's process, over gRPC's generic service: state of the world, a version for each
// type. It answers as the protocol says, or not at all, and remembers what it was asked.
//
// Thread safety: every function from any thread.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/xds_messages.h"

namespace sluice::test {

class AdsServer {
 public:
  struct Asked {
    int stream = 0;  // from 1
    std::string type_url, version, nonce, error;
    std::set<std::string> names;
    std::string node;  // its id
  };

  explicit AdsServer(std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials())
      : credentials_(std::move(credentials)) {
    Start();
  }
  ~AdsServer() { Stop(); }
  AdsServer(const AdsServer&) = delete;
  AdsServer& operator=(const AdsServer&) = delete;

  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }
  // On the port that it had.
  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port_), credentials_, &port_);
    builder.SetMaxReceiveMessageSize(-1);
    service_ = std::make_unique<Service>(*this);
    builder.RegisterCallbackGenericService(service_.get());
    server_ = builder.BuildAndStart();
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
    std::lock_guard lock(mutex_);
    streams_.clear();
  }

  // Each is a new version, and sent at once to those that have asked for it.
  void Put(const XdsCluster& cluster) { Put(kClusterUrl, cluster.name(), Packed(cluster)); }
  void Put(const XdsAssignment& assignment) { Put(kEndpointsUrl, assignment.cluster_name(), Packed(assignment)); }
  void Put(const std::string& url, const std::string& name, const Any& resource) {
    std::lock_guard lock(mutex_);
    types_[url].resources[name] = resource;
    Publish(url);
  }
  void Remove(const std::string& url, const std::string& name) {
    std::lock_guard lock(mutex_);
    types_[url].resources.erase(name);
    Publish(url);
  }
  // Reads and does not answer.
  void SetSilent(bool silent) {
    std::lock_guard lock(mutex_);
    silent_ = silent;
  }
  // To all streams, as it is.
  void SendBytes(const std::string& bytes) {
    std::lock_guard lock(mutex_);
    for (const auto& stream : streams_) stream->Send(bytes);
  }
  void EndStreams() {
    std::lock_guard lock(mutex_);
    for (const auto& stream : streams_) stream->End(grpc::Status::OK);
  }

  std::vector<Asked> asked() const {
    std::lock_guard lock(mutex_);
    return asked_;
  }
  // The last request of a type.
  Asked last(const std::string& url) const {
    std::lock_guard lock(mutex_);
    for (auto it = asked_.rbegin(); it != asked_.rend(); ++it) {
      if (it->type_url == url) return *it;
    }
    return {};
  }
  int streams_begun() const {
    std::lock_guard lock(mutex_);
    return begun_;
  }
  std::string version(const std::string& url) const {
    std::lock_guard lock(mutex_);
    const auto it = types_.find(url);
    return it == types_.end() ? "" : std::to_string(it->second.version);
  }

 private:
  // Reactions may run inside the calls that start operations.
  using Mutex = std::recursive_mutex;

  class Stream final : public grpc::ServerGenericBidiReactor {
   public:
    Stream(AdsServer& owner, int number) : owner_(owner), number_(number) { StartRead(&in_); }
    void Send(const std::string& bytes) {
      std::lock_guard lock(mutex_);
      queue_.push_back(bytes);
      WriteOn();
    }
    void End(const grpc::Status& status) {
      std::lock_guard lock(mutex_);
      if (!std::exchange(over_, true)) Finish(status);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return End(grpc::Status::OK);
      std::vector<grpc::Slice> slices;
      (void)in_.Dump(&slices);
      std::string text;
      for (const auto& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      owner_.Hear(*this, text);
      std::lock_guard lock(mutex_);
      if (!over_) StartRead(&in_);
    }
    void OnWriteDone(bool ok) override {
      std::lock_guard lock(mutex_);
      writing_ = false;
      if (ok) WriteOn();
    }
    void OnCancel() override { End(grpc::Status::CANCELLED); }
    void OnDone() override {}  // its owner keeps it until it stops

    struct Subscription {
      std::set<std::string> names;
      int64_t sent = -1;  // the version
    };
    std::map<std::string, Subscription> subscriptions;  // under the owner's mutex
    int number() const { return number_; }

   private:
    void WriteOn() {
      if (over_ || writing_ || queue_.empty()) return;
      writing_ = true;
      const grpc::Slice slice(queue_.front());
      queue_.pop_front();
      out_ = grpc::ByteBuffer(&slice, 1);
      StartWrite(&out_);
    }
    AdsServer& owner_;
    const int number_;
    Mutex mutex_;
    grpc::ByteBuffer in_, out_;
    std::deque<std::string> queue_;
    bool writing_ = false, over_ = false;
  };
  struct Service final : grpc::CallbackGenericService {
    explicit Service(AdsServer& o) : owner(o) {}
    grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
      std::lock_guard lock(owner.mutex_);
      owner.streams_.push_back(std::make_unique<Stream>(owner, ++owner.begun_));
      return owner.streams_.back().get();
    }
    AdsServer& owner;
  };
  struct Type {
    int64_t version = 0;
    std::map<std::string, Any> resources;
  };

  void Hear(Stream& stream, const std::string& bytes) {
    envoy::service::discovery::v3::DiscoveryRequest request;
    if (!request.ParseFromString(bytes)) return;
    std::lock_guard lock(mutex_);
    Asked asked{stream.number(),
                request.type_url(),
                request.version_info(),
                request.response_nonce(),
                request.error_detail().message(),
                {request.resource_names().begin(), request.resource_names().end()},
                request.node().id()};
    auto& subscription = stream.subscriptions[asked.type_url];
    const bool more = subscription.names != asked.names;
    subscription.names = asked.names;
    asked_.push_back(std::move(asked));
    if (more || subscription.sent < types_[request.type_url()].version) Answer(stream, request.type_url());
  }
  void Publish(const std::string& url) {
    ++types_[url].version;
    for (const auto& stream : streams_) {
      if (stream->subscriptions.contains(url)) Answer(*stream, url);
    }
  }
  // With all that there is of the names. Of endpoints nothing is said where there is nothing.
  void Answer(Stream& stream, const std::string& url) {
    if (silent_) return;
    const Type& type = types_[url];
    auto& subscription = stream.subscriptions[url];
    std::vector<Any> resources;
    for (const std::string& name : subscription.names) {
      if (const auto it = type.resources.find(name); it != type.resources.end()) resources.push_back(it->second);
    }
    subscription.sent = type.version;
    if (resources.empty() && url == kEndpointsUrl) return;
    stream.Send(ResponseBytes(url, std::to_string(type.version), std::to_string(++nonce_), resources));
  }

  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  int port_ = 0;
  mutable Mutex mutex_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  // Under mutex_:
  std::vector<std::unique_ptr<Stream>> streams_;
  std::map<std::string, Type> types_;
  std::vector<Asked> asked_;
  int begun_ = 0;
  uint64_t nonce_ = 0;
  bool silent_ = false;
};

}  // namespace sluice::test
