#include "proxy/handoff/remote_call.h"

#include <utility>

#include "http2/session/stream.h"

namespace sluice::proxy {

using http2::ErrorCode;
using http2::ResetCause;

namespace {

// Away's: the connection has gone, and the last call was released: nothing from away names the client any more.
void FreeClientIfUnused(AwayClient& client, WorkerChannel& back) {
  if (!client.gone || client.streams != 0) return;
  client.client.reset();
  back.Client(ItemKind::kClientFreed, client.name());
}

}  // namespace

AwayClients::~AwayClients() {
  for (AwayClient* client : clients_) {
    client->home = nullptr;
    client->calls->channel().Client(ItemKind::kClientGone, client->name());
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
  home_use.Next();
  sent_.call = name();
  sent_.bytes = 0;
  ended_ = false;
  ++client.home->open_;
}

void HomeSide::OnHeaders(http2::HeaderList&& fields, bool end_stream) {
  channel().Headers(Half::kAway, name(), fields, end_stream);
}

void HomeSide::OnData(const base::Slice& bytes, bool end_stream) {
  channel().Data(Half::kAway, name(), bytes, end_stream);
}

void HomeSide::OnReset(ErrorCode code, ResetCause cause) {
  std::exchange(stream_, nullptr)->Release();
  channel().Reset(Half::kAway, name(), code, cause);
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
  back_->Headers(Half::kHome, name(), fields, end_stream);
}

void AwaySide::SendData(const base::Slice& bytes, bool end_stream) {
  if (output_ended_ || (bytes.empty() && !end_stream)) return;
  output_ended_ = end_stream;
  back_->Data(Half::kHome, name(), bytes, end_stream);
}

void AwaySide::Consume(size_t bytes) {
  if (!input_ended_) back_->Number(ItemKind::kConsume, name(), bytes);
}

void AwaySide::Reset(ErrorCode code) {
  events_ = nullptr;
  output_ended_ = true;
  back_->Reset(Half::kHome, name(), code, ResetCause::kPeerReset);
}

void AwaySide::Release() {
  events_ = nullptr;
  WorkerChannel& back = *std::exchange(back_, nullptr);
  AwayClient& client = *client_;
  --client.streams;
  back.Number(ItemKind::kRelease, name(), 0);  // home may use this for another call from here on
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
  while (RemoteCall* call = free_.PopFront()) delete call;
  while (AwayClient* client = clients_.PopFront()) delete client;
}

RemoteCall& RemoteCalls::New() {
  RemoteCall* call = free_.back();
  if (call != nullptr) {
    call->Unlink();
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
  call.last_batch = channel_.LastWritten();
  free_.PushBack(call);
  ++free_count_;
  // Away still reads items about those whose last batch has not come back; they go when another call is freed.
  while (free_count_ > kFreeMax && channel_.HasRead(free_.front()->last_batch)) {
    delete free_.PopFront();
    --free_count_;
  }
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

void ClientGone(AwayClient& client, WorkerChannel& back) {
  client.gone = true;
  FreeClientIfUnused(client, back);
}

}  // namespace sluice::proxy
