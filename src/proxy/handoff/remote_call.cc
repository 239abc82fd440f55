#include "proxy/handoff/remote_call.h"

#include <utility>

#include "http2/session/stream.h"

namespace sluice::proxy {

using http2::ErrorCode;
using http2::ResetCause;

AwayClients::~AwayClients() {
  for (AwayClient* client : clients_) {
    client->home = nullptr;
    client->calls->channel().Client(ItemKind::kClientGone, *client);
  }
}

AwayClient& AwayClients::On(RemoteCalls& calls, const ClientPtr& client, long calls_max) {
  for (AwayClient* known : clients_) {
    if (known->calls == &calls) return *known;
  }
  AwayClient& made = calls.NewClient(client, calls_max);
  made.home = this;
  clients_.push_back(&made);
  return made;
}

void HomeSide::Begin(RemoteCalls& calls, http2::RequestStream& stream, AwayClient& client) {
  calls_ = &calls;
  stream_ = &stream;
  client_ = &client;
  sent_.call = &call();
  sent_.bytes = 0;
  ended_ = false;
  ++client.home->open_;
}

void HomeSide::OnHeaders(http2::HeaderList&& fields, bool end_stream) {
  channel().Headers(Half::kAway, call(), fields, end_stream);
}

void HomeSide::OnData(const base::Slice& bytes, bool end_stream) {
  channel().Data(Half::kAway, call(), bytes, end_stream);
}

void HomeSide::OnReset(ErrorCode code, ResetCause cause) {
  std::exchange(stream_, nullptr)->Release();
  channel().Reset(Half::kAway, call(), code, cause);
}

void HomeSide::OnSent(size_t bytes) {
  if (ended_) return;
  sent_.bytes += bytes;
  channel().SentLater(sent_);
}

void HomeSide::End() {
  ended_ = true;
  sent_.bytes = 0;
}

void HomeSide::SendHeaders(const http2::HeaderList& fields, bool end_stream) {
  if (end_stream) End();
  if (stream_ != nullptr) stream_->SendHeaders(fields, end_stream);
}

void HomeSide::SendData(const base::Slice& bytes, bool end_stream) {
  if (end_stream) End();
  if (stream_ != nullptr) stream_->SendData(bytes, end_stream);
}

void HomeSide::Consume(size_t bytes) {
  if (stream_ != nullptr) stream_->Consume(bytes);
}

void HomeSide::Reset(ErrorCode code) {
  End();
  if (stream_ != nullptr) stream_->Reset(code);
}

void HomeSide::Release() {
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->Release();
  if (client_->home != nullptr) --client_->home->open_;
  sent_.Unlink();
  calls_->Free(call());
}

void AwaySide::Begin(WorkerChannel& back, AwayClient& client) {
  back_ = &back;
  client_ = &client;
  events_ = nullptr;
  input_ended_ = output_ended_ = false;
  ++client.streams;
}

void AwaySide::SendHeaders(const http2::HeaderList& fields, bool end_stream) {
  if (output_ended_) return;
  output_ended_ = end_stream;
  back_->Headers(Half::kHome, call(), fields, end_stream);
}

void AwaySide::SendData(const base::Slice& bytes, bool end_stream) {
  if (output_ended_ || (bytes.empty() && !end_stream)) return;
  output_ended_ = end_stream;
  back_->Data(Half::kHome, call(), bytes, end_stream);
}

void AwaySide::Consume(size_t bytes) {
  if (!input_ended_) back_->Number(ItemKind::kConsume, call(), bytes);
}

void AwaySide::Reset(ErrorCode code) {
  events_ = nullptr;
  output_ended_ = true;
  back_->Reset(Half::kHome, call(), code, ResetCause::kPeerReset);
}

void AwaySide::Release() {
  events_ = nullptr;
  WorkerChannel& back = *std::exchange(back_, nullptr);
  AwayClient& client = *client_;
  --client.streams;
  back.Number(ItemKind::kRelease, call(), 0);  // home may free this from here on
  FreeClientIfUnused(client, back);
}

void AwaySide::OnHeaders(http2::HeaderList&& fields) {
  input_ended_ = true;
  if (events_ != nullptr) events_->OnHeaders(std::move(fields), true);
}

void AwaySide::OnData(const base::Slice& bytes, bool end_stream) {
  input_ended_ |= end_stream;
  if (events_ != nullptr) events_->OnData(bytes, end_stream);
}

void AwaySide::OnReset(ErrorCode code, ResetCause cause) {
  output_ended_ = true;
  if (events_ != nullptr) std::exchange(events_, nullptr)->OnReset(code, cause);
}

void AwaySide::OnSent(size_t bytes) {
  if (events_ != nullptr) events_->OnSent(bytes);
}

RemoteCalls::~RemoteCalls() {
  while (RemoteCall* call = in_use_.PopFront()) delete call;
  while (RemoteCall* call = free_) {
    free_ = call->next_free;
    delete call;
  }
  while (AwayClient* client = clients_.PopFront()) delete client;
}

RemoteCall& RemoteCalls::New() {
  RemoteCall* call = free_;
  if (call != nullptr) {
    free_ = call->next_free;
    --free_count_;
  } else {
    call = new RemoteCall;
  }
  in_use_.PushBack(*call);
  ++open_;
  return *call;
}

void RemoteCalls::Free(RemoteCall& call) {
  --open_;
  call.Unlink();
  if (free_count_ == kFreeMax) {
    delete &call;
    return;
  }
  call.next_free = free_;
  free_ = &call;
  ++free_count_;
}

AwayClient& RemoteCalls::NewClient(const ClientPtr& client, long calls_max) {
  auto* made = new AwayClient;
  made->calls = this;
  made->calls_max = calls_max;
  made->client = std::make_shared<const Client>(*client);
  clients_.PushBack(*made);
  return *made;
}

void RemoteCalls::FreeClient(AwayClient& client) { delete &client; }

void FreeClientIfUnused(AwayClient& client, WorkerChannel& back) {
  if (!client.gone || client.streams != 0) return;
  client.client.reset();
  back.Client(ItemKind::kClientFreed, client);
}

}  // namespace sluice::proxy
