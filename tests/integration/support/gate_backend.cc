#include "support/gate_backend.h"

#include <grpcpp/server_builder.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

namespace sluice::integration {

using echo::v1::EchoReply;
using echo::v1::EchoRequest;

std::string GateBackend::Call::Metadata(const std::string& name) const {
  const auto found = context->client_metadata().find(name);
  return found == context->client_metadata().end() ? "" : std::string(found->second.data(), found->second.size());
}

class GateBackend::Reactor final : public grpc::ServerUnaryReactor {
 public:
  Reactor(GateBackend* gate, grpc::CallbackServerContext* context, const EchoRequest* request, EchoReply* reply)
      : gate_(gate), call_{context, request, reply, 0}, client_(call_.Metadata(kClientMetadata)) {
    bool go;
    {
      std::lock_guard lock(gate_->mutex_);
      call_.number = gate_->arrivals_.size();
      gate_->arrivals_.push_back({std::chrono::steady_clock::now(), client_});
      go = gate_->open_;
      if (!go) {
        place_ = gate_->held_.insert(gate_->held_.end(), this);
        gate_->peak_ = std::max(gate_->peak_, gate_->held_.size());
      }
    }
    if (gate_->on_arrival_) gate_->on_arrival_(call_);
    if (go) Go();
  }
  // Out of the list.
  void Go() { Finish(gate_->AnswerTo(call_)); }
  const std::string& client() const { return client_; }

  // Under the gate's mutex.
  void TakeOut() { gate_->held_.erase(*std::exchange(place_, std::nullopt)); }

  void OnCancel() override {
    {
      std::lock_guard lock(gate_->mutex_);
      if (!place_) return;
      TakeOut();
      ++gate_->cancelled_;
    }
    Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  GateBackend* const gate_;
  Call call_;
  const std::string client_;
  std::optional<std::list<Reactor*>::iterator> place_;  // in the list; under the gate's mutex
};

class GateBackend::Service final : public echo::v1::Echo::CallbackService {
 public:
  explicit Service(GateBackend* gate) : gate_(gate) {}
  grpc::ServerUnaryReactor* Unary(grpc::CallbackServerContext* context, const EchoRequest* request,
                                  EchoReply* reply) override {
    return new Reactor(gate_, context, request, reply);
  }

 private:
  GateBackend* const gate_;
};

GateBackend::GateBackend(std::string name, Answer answer, std::function<void(const Call&)> on_arrival)
    : name_(std::move(name)),
      answer_(std::move(answer)),
      on_arrival_(std::move(on_arrival)),
      service_(std::make_unique<Service>(this)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(service_.get());
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  server_ = builder.BuildAndStart();
  if (!server_ || port_ == 0) {
    std::fprintf(stderr, "a backend cannot listen on 127.0.0.1\n");
    std::abort();
  }
}

GateBackend::~GateBackend() { Kill(); }

void GateBackend::Kill() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

grpc::Status GateBackend::AnswerTo(const Call& call) const {
  call.context->AddTrailingMetadata("echo-backend", name_);
  if (answer_) return answer_(call);
  call.reply->set_backend(name_);
  if (call.request->reply_bytes() != 0) {
    call.reply->set_payload(std::string(call.request->reply_bytes(), 'r'));
  } else {
    call.reply->set_payload(call.request->payload());
  }
  call.reply->set_index(call.number);
  return grpc::Status::OK;
}

void GateBackend::Close() {
  std::lock_guard lock(mutex_);
  open_ = false;
}

void GateBackend::Open() {
  {
    std::lock_guard lock(mutex_);
    open_ = true;
  }
  Release(static_cast<size_t>(-1));
}

void GateBackend::Release(size_t count) {
  std::vector<Reactor*> going;
  {
    std::lock_guard lock(mutex_);
    while (going.size() < count && !held_.empty()) {
      going.push_back(held_.front());
      held_.front()->TakeOut();
    }
  }
  for (Reactor* reactor : going) reactor->Go();
}

uint64_t GateBackend::arrived() const {
  std::lock_guard lock(mutex_);
  return arrivals_.size();
}

size_t GateBackend::held() const {
  std::lock_guard lock(mutex_);
  return held_.size();
}

size_t GateBackend::held(const std::string& client) const {
  std::lock_guard lock(mutex_);
  size_t count = 0;
  for (const Reactor* reactor : held_) count += reactor->client() == client;
  return count;
}

uint64_t GateBackend::cancelled() const {
  std::lock_guard lock(mutex_);
  return cancelled_;
}

size_t GateBackend::peak() const {
  std::lock_guard lock(mutex_);
  return peak_;
}

std::vector<GateBackend::Arrival> GateBackend::arrivals() const {
  std::lock_guard lock(mutex_);
  return arrivals_;
}

}  // namespace sluice::integration
