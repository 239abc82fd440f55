#include "chaos/client.h"

namespace sluice::chaos {

void Client::Begin(Call& call) {
  waiting_.push_back(&call);
  SendNext();
}

void Client::OnSettings() {
  ready_ = true;
  SendNext();
}

void Client::SendNext() {
  while (ready_ && !gone() && !goaway_ && !spoiled() && !waiting_.empty() &&
         (open_ < peer_streams_max() || (bad_ && dice_.OneIn(8)))) {
    Call& call = *waiting_.front();
    waiting_.pop_front();
    Send(call);
  }
}

void Client::Send(Call& call) {
  if (stage_.over) call.never_ends = false;
  call.stream = next_;
  next_ += 2;
  ++open_;
  calls_[call.stream] = &call;
  const bool whole = call.body.empty() && call.trailers.empty() && !call.never_ends;
  SendHeaders(call.stream, call.fields, whole && dice_.OneIn(2));
  SendBody(call);
}

// In one piece, or in several with pauses.
void Client::SendBody(Call& call) {
  const size_t pieces = dice_.OneIn(2) ? 1 : dice_.In(1, 4);
  size_t from = 0;
  Micros delay(0);
  for (size_t i = 0; i < pieces; ++i) {
    const bool last = i + 1 == pieces;
    const size_t to = last ? call.body.size() : from + dice_.Below(call.body.size() - from + 1);
    const auto send = [this, &call, from, to, last] {
      if (call.cancelled || gone()) return;
      const bool end = last && !call.never_ends;
      SendData(call.stream, std::string_view(call.body).substr(from, to - from), end && call.trailers.empty());
      if (end && !call.trailers.empty()) SendHeaders(call.stream, call.trailers, true);
    };
    if (delay.count() == 0)
      send();
    else
      stage_.timeline.After(delay, send);
    delay += dice_.Time(manners_.write_delay) + Micros(i == 0 ? 0 : 1);
    from = to;
  }
}

void Client::Cancel(Call& call, uint32_t code) {
  if (call.stream == 0 || call.cancelled || call.ended || gone()) return;
  call.cancelled = true;
  --open_;
  SendReset(call.stream, code);
  SendNext();
}

void Client::Finish() {
  // After garbage the proxy may wait for the rest of a frame.
  if (spoiled()) return Close();
  GoOn();
  for (auto& [id, call] : calls_) {
    if (!call->never_ends || call->cancelled || gone()) continue;
    call->never_ends = false;
    SendData(id, "", call->trailers.empty());
    if (!call->trailers.empty()) SendHeaders(id, call->trailers, true);
  }
}

Call* Client::Find(uint32_t id, const char* what) {
  const auto it = calls_.find(id);
  if (it == calls_.end()) {
    Fault(std::string(what) + " on stream " + std::to_string(id) + ", which no call has");
    return nullptr;
  }
  return it->second;
}

void Client::End(Call& call) {
  if (call.ended) return Fault("call " + std::to_string(call.number) + " ends twice");
  call.ended = true;
  call.excused = excused_;
  if (!call.cancelled) --open_;
  SendNext();
  CloseWhenDone();
}

void Client::OnHeaders(uint32_t id, const h2::Fields& fields, bool end) {
  Call* call = Find(id, "HEADERS");
  if (call == nullptr) return;
  if (call->ended) return Fault("HEADERS for call " + std::to_string(call->number) + ", which has ended");
  // Interim responses of an endpoint go to plain HTTP clients only (RFC 9110 15.2).
  const bool interim = !fields.empty() && fields[0].first == ":status" && fields[0].second.starts_with('1');
  if (interim && !end && !call->grpc() && !call->headers) return;
  for (const auto& [name, value] : fields) {
    if (name == "grpc-status") {
      if (call->status) Fault("call " + std::to_string(call->number) + " has two statuses");
      call->status = std::atoi(value.c_str());
    }
    if (name == ":status") {
      if (call->headers) Fault("call " + std::to_string(call->number) + " has two :status");
      call->http_status = value;
    }
    if (name == "sluice-reason") call->reason = value;
  }
  if (!call->headers && call->http_status.empty()) Fault("call " + std::to_string(call->number) + " has no :status");
  if (call->headers && !end) Fault("call " + std::to_string(call->number) + " has trailers that do not end it");
  call->headers = true;
  if (!end) return;
  call->whole = true;
  End(*call);
}

void Client::OnData(uint32_t id, std::string_view bytes, bool end) {
  Call* call = Find(id, "DATA");
  if (call == nullptr) return;
  if (call->ended) return Fault("DATA for call " + std::to_string(call->number) + ", which has ended");
  if (!call->headers) Fault("call " + std::to_string(call->number) + " has DATA before HEADERS");
  call->response += bytes;
  if (!end) return;
  call->whole = true;
  End(*call);
}

void Client::OnReset(uint32_t id, uint32_t code) {
  Call* call = Find(id, "RST_STREAM");
  if (call == nullptr) return;
  if (call->ended && call->whole && code == 0) return;  // RFC 9113 8.1: the rest of the request is not wanted
  call->reset = code;
  End(*call);
}

void Client::OnGoaway(uint32_t last, uint32_t) {
  if (goaway_ && last > *goaway_) Fault("GOAWAY lets through more than the one before");
  goaway_ = last;
  CloseWhenDone();
}

void Client::CloseWhenDone() {
  if (!goaway_ || gone()) return;
  for (auto& [id, call] : calls_) {
    if (id <= *goaway_ && !call->ended && !call->cancelled) return;
  }
  if (*goaway_ == 0x7fffffff) return;  // the second one is to come
  stage_.timeline.After(dice_.Time(manners_.read_delay), [this] { Close(); });
}

void Client::OnGone() {
  for (auto& [id, call] : calls_) {
    if (call->ended) continue;
    // Refused in good order, or by right.
    if (spoiled() || excused_ || (goaway_ && id > *goaway_))
      call->excused = true;
    else if (!call->cancelled)
      Fault("call " + std::to_string(call->number) + " is lost with its connection");
    call->ended = true;
  }
}

std::string Client::RoleWrongFrame() {
  switch (dice_.Below(5)) {
    case 0:
      return h2::Headers(2, h2::Block(h2::GrpcRequest()));
    case 1:
      return next_ > 1 ? h2::Headers(1, h2::Block(h2::GrpcRequest())) : h2::Settings({{2, 7}});
    case 2:
      return h2::Settings({{2, 7}});
    case 3:
      return h2::Data(next_ + 10, "never opened");
    default:
      return "GET / HTTP/1.1\r\n\r\n";
  }
}

}  // namespace sluice::chaos
