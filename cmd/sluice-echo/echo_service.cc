// EchoService: what the four kinds share is in Script; each kind is one reactor below it.
#include "sluice-echo/echo_service.h"

#include <grpcpp/alarm.h>
#include <xxhash.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>

namespace sluice::echo {

using v1::EchoReply;
using v1::EchoRequest;

// One call's context, its instructions and what it has received so far.
//
// Thread safety: gRPC runs a reactor's callbacks one after the other but OnCancel beside them, so only what
// Pause and Cancel share is under the mutex.
class Script {
 public:
  Script(EchoService* service, grpc::CallbackServerContext* context) : service_(service), context_(context) {
    service_->calls_.fetch_add(1, std::memory_order_relaxed);
    service_->in_flight_.fetch_add(1, std::memory_order_relaxed);
    XXH64_reset(digest_.get(), 0);
  }
  ~Script() { service_->in_flight_.fetch_sub(1, std::memory_order_relaxed); }

  // Takes the call's instructions from its first message and sets the headers.
  void Steer(const EchoRequest& request) {
    if (steered_) return;
    steered_ = true;
    // The payload may be large and is not an instruction.
    failure_ = request.failure();
    fails_ = request.has_failure();
    if (!request.trailers_only()) context_->AddInitialMetadata(kBackendMetadata, service_->name());
    context_->AddTrailingMetadata(kBackendMetadata, service_->name());
    const std::string value(request.metadata_bytes(), 'm');
    for (uint32_t i = 0; i < request.metadata_count(); ++i) {
      if (!request.trailers_only()) context_->AddInitialMetadata("echo-header-" + std::to_string(i), value);
      context_->AddTrailingMetadata("echo-trailer-" + std::to_string(i), value);
    }
  }

  void Received(const EchoRequest& request) {
    ++messages_;
    bytes_ += request.payload().size();
    XXH64_update(digest_.get(), request.payload().data(), request.payload().size());
  }

  // Whether the failure asked for is due now that `count` messages have passed.
  bool FailsAfter(uint64_t count) const { return fails_ && count >= failure_.after(); }
  bool fails() const { return fails_; }

  // The status to finish with: the failure asked for, or OK.
  grpc::Status Outcome() {
    if (!fails_) return grpc::Status::OK;
    if (failure_.reset()) {
      context_->TryCancel();
      return grpc::Status::CANCELLED;
    }
    return grpc::Status(static_cast<grpc::StatusCode>(failure_.code()), failure_.message(), failure_.details());
  }

  void Fill(const EchoRequest& request, uint64_t index, EchoReply* reply) {
    reply->set_backend(service_->name());
    if (request.reply_bytes() != 0) {
      reply->mutable_payload()->assign(request.reply_bytes(), '\0');
    } else {
      reply->set_payload(request.payload());
    }
    reply->set_index(index);
    reply->set_received_messages(messages_);
    reply->set_received_bytes(bytes_);
    reply->set_received_digest(XXH64_digest(digest_.get()));
    reply->set_peer(context_->peer());
    reply->set_time_left_ms(TimeLeft());
    if (!request.return_metadata()) return;
    for (const auto& [key, value] : context_->client_metadata()) {
      v1::Metadata* field = reply->add_metadata();
      field->set_key(key.data(), key.size());
      field->set_value(value.data(), value.size());
    }
    const grpc::string_ref authority = context_->ExperimentalGetAuthority();
    reply->set_authority(authority.data(), authority.size());
  }

  // Runs `next` after `milliseconds`, or at once when the call is cancelled.
  void Pause(uint32_t milliseconds, std::function<void()> next) {
    if (milliseconds != 0) {
      std::lock_guard lock(mutex_);
      if (!cancelled_) {
        // A new alarm each time: one that is set again would destroy the callback it is running.
        alarm_ = std::make_unique<grpc::Alarm>();
        alarm_->Set(std::chrono::system_clock::now() + std::chrono::milliseconds(milliseconds),
                    [next = std::move(next)](bool) { next(); });
        return;
      }
    }
    next();
  }

  void Cancel() {
    service_->cancelled_.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (alarm_) alarm_->Cancel();
  }

 private:
  int64_t TimeLeft() const {
    using std::chrono::system_clock;
    const auto deadline = context_->deadline();
    if (deadline == system_clock::time_point::max()) return -1;
    return std::chrono::duration_cast<std::chrono::milliseconds>(deadline - system_clock::now()).count();
  }

  EchoService* const service_;
  grpc::CallbackServerContext* const context_;
  bool steered_ = false, fails_ = false;
  v1::Failure failure_;
  uint64_t messages_ = 0, bytes_ = 0;
  std::unique_ptr<XXH64_state_t, XXH_errorcode (*)(XXH64_state_t*)> digest_{XXH64_createState(), &XXH64_freeState};

  std::mutex mutex_;
  bool cancelled_ = false;              // guarded by mutex_
  std::unique_ptr<grpc::Alarm> alarm_;  // guarded by mutex_
};

namespace {

class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(EchoService* service, grpc::CallbackServerContext* context, const EchoRequest* request, EchoReply* reply)
      : script_(service, context) {
    script_.Steer(*request);
    script_.Received(*request);
    if (request->headers_first()) StartSendInitialMetadata();
    script_.Pause(request->delay_ms(), [this, request, reply] {
      if (!script_.fails()) script_.Fill(*request, 0, reply);
      Finish(script_.Outcome());
    });
  }
  void OnCancel() override { script_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  Script script_;
};

class ServerStreamCall final : public grpc::ServerWriteReactor<EchoReply> {
 public:
  ServerStreamCall(EchoService* service, grpc::CallbackServerContext* context, const EchoRequest* request)
      : script_(service, context), request_(*request) {
    script_.Steer(request_);
    script_.Received(request_);
    if (request_.headers_first()) StartSendInitialMetadata();
    script_.Pause(request_.delay_ms(), [this] { Next(); });
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    ++sent_;
    script_.Pause(sent_ < request_.reply_count() ? request_.reply_interval_ms() : 0, [this] { Next(); });
  }
  void OnCancel() override { script_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void Next() {
    if (sent_ >= request_.reply_count() || script_.FailsAfter(sent_)) return Finish(script_.Outcome());
    reply_.Clear();
    script_.Fill(request_, sent_, &reply_);
    StartWrite(&reply_);
  }

  Script script_;
  const EchoRequest request_;
  EchoReply reply_;
  uint64_t sent_ = 0;
};

class ClientStreamCall final : public grpc::ServerReadReactor<EchoRequest> {
 public:
  ClientStreamCall(EchoService* service, grpc::CallbackServerContext* context, EchoReply* reply)
      : script_(service, context), reply_(reply) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return End();
    if (received_ == 0) {
      script_.Steer(request_);
      first_ = request_;
      first_.clear_payload();
      if (first_.headers_first()) StartSendInitialMetadata();
    }
    script_.Received(request_);
    if (script_.FailsAfter(++received_)) return Finish(script_.Outcome());
    StartRead(&request_);
  }
  void OnCancel() override { script_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  void End() {
    script_.Steer(first_);  // a stream without messages is named too
    script_.Pause(first_.delay_ms(), [this] {
      script_.Fill(first_, 0, reply_);
      Finish(script_.Outcome());
    });
  }

  Script script_;
  EchoReply* const reply_;
  EchoRequest request_, first_;
  uint64_t received_ = 0;
};

class BidiStreamCall final : public grpc::ServerBidiReactor<EchoRequest, EchoReply> {
 public:
  BidiStreamCall(EchoService* service, grpc::CallbackServerContext* context) : script_(service, context) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) {
      script_.Steer(EchoRequest());
      return Finish(script_.Outcome());
    }
    if (received_ == 0) {
      script_.Steer(request_);
      if (request_.headers_first()) StartSendInitialMetadata();
    }
    script_.Received(request_);
    if (script_.FailsAfter(++received_)) return Finish(script_.Outcome());
    if (request_.no_reply()) return StartRead(&request_);
    script_.Pause(request_.delay_ms(), [this] {
      reply_.Clear();
      script_.Fill(request_, sent_, &reply_);
      StartWrite(&reply_);
    });
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    ++sent_;
    StartRead(&request_);
  }
  void OnCancel() override { script_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  Script script_;
  EchoRequest request_;
  EchoReply reply_;
  uint64_t received_ = 0, sent_ = 0;
};

}  // namespace

grpc::ServerUnaryReactor* EchoService::Unary(grpc::CallbackServerContext* context, const EchoRequest* request,
                                             EchoReply* reply) {
  return new UnaryCall(this, context, request, reply);
}

grpc::ServerWriteReactor<EchoReply>* EchoService::ServerStream(grpc::CallbackServerContext* context,
                                                               const EchoRequest* request) {
  return new ServerStreamCall(this, context, request);
}

grpc::ServerReadReactor<EchoRequest>* EchoService::ClientStream(grpc::CallbackServerContext* context,
                                                                EchoReply* reply) {
  return new ClientStreamCall(this, context, reply);
}

grpc::ServerBidiReactor<EchoRequest, EchoReply>* EchoService::BidiStream(grpc::CallbackServerContext* context) {
  return new BidiStreamCall(this, context);
}

}  // namespace sluice::echo
