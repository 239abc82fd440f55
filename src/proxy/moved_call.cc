#include "proxy/moved_call.h"

#include <utility>

#include "http2/stream.h"
#include "proxy/call_lane.h"

namespace sluice::proxy {

using http2::ErrorCode;
using http2::ResetCause;

AwayClients::~AwayClients() {
  for (AwayClient* client : clients_) {
    client->home = nullptr;
    client->lane->Client(ItemKind::kClientGone, *client);
  }
}

AwayClient& AwayClients::On(CallLane& lane, const ClientPtr& client, long calls_max) {
  for (AwayClient* known : clients_) {
    if (known->lane == &lane) return *known;
  }
  AwayClient& made = lane.NewClient(client, calls_max);
  made.home = this;
  clients_.push_back(&made);
  return made;
}

void HomeStream::Begin(CallLane& lane, http2::Stream& stream, AwayClient& client) {
  lane_ = &lane;
  stream_ = &stream;
  client_ = &client;
  sent_ = 0;
  ended_ = false;
  ++client.home->open_;
}

void HomeStream::OnHeaders(http2::HeaderList fields, bool end_stream) {
  lane_->Headers(Half::kAway, call(), fields, end_stream);
}

void HomeStream::OnData(const base::Slice& bytes, bool end_stream) {
  lane_->Data(Half::kAway, call(), bytes, end_stream);
}

void HomeStream::OnReset(ErrorCode code, ResetCause cause) {
  std::exchange(stream_, nullptr)->Release();
  lane_->Reset(Half::kAway, call(), code, cause);
}

void HomeStream::OnSent(size_t bytes) {
  if (ended_) return;
  sent_ += bytes;
  lane_->SentLater(*this);
}

size_t HomeStream::TakeSent() { return ended_ ? 0 : std::exchange(sent_, 0); }

void HomeStream::SendHeaders(const http2::HeaderList& fields, bool end_stream) {
  ended_ |= end_stream;
  if (stream_ != nullptr) stream_->SendHeaders(fields, end_stream);
}

void HomeStream::SendData(const base::Slice& bytes, bool end_stream) {
  ended_ |= end_stream;
  if (stream_ != nullptr) stream_->SendData(bytes, end_stream);
}

void HomeStream::Consume(size_t bytes) {
  if (stream_ != nullptr) stream_->Consume(bytes);
}

void HomeStream::Reset(ErrorCode code) {
  ended_ = true;
  if (stream_ != nullptr) stream_->Reset(code);
}

void HomeStream::Release() {
  if (stream_ != nullptr) std::exchange(stream_, nullptr)->Release();
  if (client_->home != nullptr) --client_->home->open_;
  base::ListNode<HomeStream>::Unlink();
  lane_->FreeCall(call());
}

void RemoteStream::Begin(CallLane& back, AwayClient& client) {
  back_ = &back;
  client_ = &client;
  events_ = nullptr;
  input_ended_ = output_ended_ = false;
  ++client.streams;
}

void RemoteStream::SendHeaders(const http2::HeaderList& fields, bool end_stream) {
  if (output_ended_) return;
  output_ended_ = end_stream;
  back_->Headers(Half::kHome, call(), fields, end_stream);
}

void RemoteStream::SendData(const base::Slice& bytes, bool end_stream) {
  if (output_ended_ || (bytes.empty() && !end_stream)) return;
  output_ended_ = end_stream;
  back_->Data(Half::kHome, call(), bytes, end_stream);
}

void RemoteStream::Consume(size_t bytes) {
  if (!input_ended_) back_->Number(ItemKind::kConsume, call(), bytes);
}

void RemoteStream::Reset(ErrorCode code) {
  events_ = nullptr;
  output_ended_ = true;
  back_->Reset(Half::kHome, call(), code, ResetCause::kPeerReset);
}

void RemoteStream::Release() {
  events_ = nullptr;
  CallLane& back = *std::exchange(back_, nullptr);
  AwayClient& client = *client_;
  --client.streams;
  back.Number(ItemKind::kRelease, call(), 0);  // home may free this from here on
  FreeClientIfUnused(client, back);
}

void RemoteStream::OnHeaders(http2::HeaderList fields) {
  input_ended_ = true;
  if (events_ != nullptr) events_->OnHeaders(std::move(fields), true);
}

void RemoteStream::OnData(const base::Slice& bytes, bool end_stream) {
  input_ended_ |= end_stream;
  if (events_ != nullptr) events_->OnData(bytes, end_stream);
}

void RemoteStream::OnReset(ErrorCode code, ResetCause cause) {
  output_ended_ = true;
  if (events_ != nullptr) std::exchange(events_, nullptr)->OnReset(code, cause);
}

void RemoteStream::OnSent(size_t bytes) {
  if (events_ != nullptr) events_->OnSent(bytes);
}

void FreeClientIfUnused(AwayClient& client, CallLane& back) {
  if (!client.gone || client.streams != 0) return;
  client.client.reset();
  back.Client(ItemKind::kClientFreed, client);
}

}  // namespace sluice::proxy
