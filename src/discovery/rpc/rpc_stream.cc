#include "discovery/rpc/rpc_stream.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <mutex>

#include "runtime/worker.h"

namespace sluice::discovery {
namespace {

std::string_view NameOf(int code) {
  static constexpr std::string_view kNames[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  return code >= 0 && static_cast<size_t>(code) < std::size(kNames) ? kNames[code] : "status";
}

grpc::ByteBuffer BufferOf(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  text.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices) text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

}  // namespace

std::string RpcStream::End::ToString() const {
  std::string text(NameOf(code));
  if (!message.empty()) text += ": " + message;
  return text;
}

// What gRPC's threads tell, and what they have in hand. It lives until OnDone, and until the stream is gone.
//
// gRPC may run a reaction inside the call that starts an operation. So no operation is started, and no hold given back,
// under the mutex. A hold keeps the RPC from its end, so that operations may be started from outside of a reaction: one
// until nothing more can be read, and one around each such start.
class RpcStream::Reactor final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  Reactor(std::shared_ptr<RpcChannel> channel, Bell& bell)
      : channel_(std::move(channel)), stub_(channel_->channel()), worker_(runtime::Worker::Current()), bell_(&bell) {}

  void Begin(const Options& options, std::shared_ptr<Reactor> self) {
    self_ = std::move(self);
    for (const auto& [name, value] : options.metadata) context_.AddMetadata(name, value);
    if (options.timeout.count() > 0) {
      // A span, which gRPC adds to its own clock.
      context_.set_deadline(gpr_time_from_millis(options.timeout.count(), GPR_TIMESPAN));
    }
    stub_.PrepareBidiStreamingCall(&context_, options.method, {}, this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  void Send(std::string message) {
    {
      std::lock_guard lock(mutex_);
      if (!held_ || sending_ended_) return;
      outbox_.push_back(std::move(message));
    }
    WriteFromOutside();
  }

  void SendEnd() {
    {
      std::lock_guard lock(mutex_);
      if (!held_) return;
      sending_ended_ = true;
    }
    WriteFromOutside();
  }

  std::optional<std::string> Take() {
    std::optional<std::string> message;
    bool read_on = false;
    {
      std::lock_guard lock(mutex_);
      if (inbox_.empty()) return message;
      message.emplace(std::move(inbox_.front()));
      inbox_.pop_front();
      inbox_bytes_ -= message->size();
      read_on = paused_ && held_;
      if (read_on) {
        paused_ = false;
        AddHold();
      }
    }
    if (read_on) {
      StartRead(&incoming_);
      RemoveHold();
    }
    return message;
  }

  std::optional<End> end() const {
    std::lock_guard lock(mutex_);
    return inbox_.empty() ? end_ : std::nullopt;
  }

  // On the worker: it is of no use any more.
  void Abandon() {
    bell_ = nullptr;
    {
      std::lock_guard lock(mutex_);
      worker_ = nullptr;
      inbox_.clear();
      inbox_bytes_ = 0;
      outbox_.clear();
    }
    context_.TryCancel();
    GiveHoldBack();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return GiveHoldBack();
    bool read_on = false;
    std::string message = TextOf(incoming_);
    {
      std::lock_guard lock(mutex_);
      if (worker_ != nullptr) {
        inbox_bytes_ += message.size();
        inbox_.push_back(std::move(message));
      }
      read_on = inbox_.size() < kInboxMax && inbox_bytes_ < kInboxBytesMax;
      paused_ = !read_on;
      Ring();
    }
    incoming_.Clear();
    if (read_on) StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    {
      std::lock_guard lock(mutex_);
      writing_ = false;
      if (!ok) outbox_.clear();
    }
    if (ok) WriteNext();
  }

  void OnDone(const grpc::Status& status) override {
    std::shared_ptr<Reactor> self;
    {
      std::lock_guard lock(mutex_);
      end_ = End{static_cast<int>(status.error_code()), status.error_message()};
      Ring();
      self = std::move(self_);
    }
  }

  void WriteFromOutside() {
    {
      std::lock_guard lock(mutex_);
      if (!held_) return;
      AddHold();
    }
    WriteNext();
    RemoveHold();
  }

  void WriteNext() {
    bool end = false;
    {
      std::lock_guard lock(mutex_);
      if (writing_ || half_closed_) return;
      end = outbox_.empty();
      if (end && !sending_ended_) return;
      writing_ = !end;
      half_closed_ = end;
      if (!end) {
        outgoing_ = BufferOf(outbox_.front());
        outbox_.pop_front();
      }
    }
    if (end)
      StartWritesDone();
    else
      StartWrite(&outgoing_);
  }

  void GiveHoldBack() {
    {
      std::lock_guard lock(mutex_);
      if (!std::exchange(held_, false)) return;
    }
    RemoveHold();
  }

  // Under the mutex. One post at a time: the task takes all that is there.
  void Ring() {
    if (worker_ == nullptr || ringing_) return;
    ringing_ = true;
    worker_->Post([self = self_] {
      {
        std::lock_guard lock(self->mutex_);
        self->ringing_ = false;
      }
      if (self->bell_ != nullptr) self->bell_->Ring();
    });
  }

  const std::shared_ptr<RpcChannel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  // Of the operations under way.
  grpc::ByteBuffer incoming_, outgoing_;

  mutable std::mutex mutex_;
  // Under mutex_:
  std::shared_ptr<Reactor> self_;  // until OnDone
  runtime::Worker* worker_;        // null: abandoned
  std::deque<std::string> inbox_, outbox_;
  size_t inbox_bytes_ = 0;
  bool held_ = true;
  bool paused_ = false;  // the inbox is full, and nothing is being read
  bool writing_ = false, sending_ended_ = false, half_closed_ = false;
  bool ringing_ = false;  // a ring is on its way
  std::optional<End> end_;

  Bell* bell_;  // on the worker only
};

RpcStream::RpcStream(std::shared_ptr<RpcChannel> channel, const Options& options, Bell& bell)
    : reactor_(std::make_shared<Reactor>(std::move(channel), bell)) {
  reactor_->Begin(options, reactor_);
}

RpcStream::~RpcStream() { reactor_->Abandon(); }

void RpcStream::Send(std::string message) { reactor_->Send(std::move(message)); }

void RpcStream::SendEnd() { reactor_->SendEnd(); }

std::optional<std::string> RpcStream::Take() { return reactor_->Take(); }

std::optional<RpcStream::End> RpcStream::end() const { return reactor_->end(); }

}  // namespace sluice::discovery
