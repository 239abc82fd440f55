#include "proxy/call/fault.h"

#include <algorithm>

namespace sluice::proxy {

// How many of these bytes belong to messages that are still to be passed on (gRPC over HTTP/2, "Length-Prefixed-
// Message").
size_t CutFilter::BytesOfMessages(const base::Slice& bytes) {
  constexpr uint32_t kPrefixBytes = 5;
  const std::string_view view = bytes.view();
  size_t at = 0;
  while (messages_left_ > 0 && at < view.size()) {
    if (prefix_bytes_ < kPrefixBytes) {
      if (prefix_bytes_ > 0) body_left_ = body_left_ << 8 | static_cast<uint8_t>(view[at]);
      ++prefix_bytes_;
      ++at;
    } else {
      const auto part = static_cast<size_t>(std::min<uint64_t>(body_left_, view.size() - at));
      body_left_ -= part;
      at += part;
    }
    if (prefix_bytes_ < kPrefixBytes || body_left_ > 0) continue;
    --messages_left_;
    prefix_bytes_ = 0;
  }
  return at;
}

void CutFilter::SendHeaders(const http2::HeaderList& fields, bool end_stream) {
  if (state_ != State::kOpen) return;
  // A response that is one block has no messages, so only a cut before the first one is for it.
  if (messages_left_ > 0) return next().SendHeaders(fields, end_stream);
  if (!end_stream) next().SendHeaders(fields, false);
  Cut();
}

void CutFilter::SendData(const base::Slice& bytes, bool end_stream) {
  if (state_ != State::kOpen) return;
  const size_t size = BytesOfMessages(bytes);
  passed_ += size;
  if (messages_left_ > 0) return next().SendData(bytes, end_stream);
  state_ = State::kCutting;
  next().SendData(bytes.Sub(0, size), false);  // may say at once that it is sent
}

// A reset drops what is queued.
void CutFilter::OnSent(size_t bytes) {
  sent_ += bytes;
  if (state_ == State::kCutting && sent_ >= passed_) Cut();
}

void CutFilter::Cut() {
  next().Reset(http2::ErrorCode::kInternalError);
  next().Release();
  state_ = State::kCut;
  done_.Set();
}

void CutFilter::Abandon() {
  if (state_ == State::kCutting) next().Release();
  if (state_ != State::kCut) state_ = State::kReleased;
}

void CutFilter::Consume(size_t bytes) {
  if (state_ == State::kOpen || state_ == State::kCutting) next().Consume(bytes);
}

void CutFilter::Reset(http2::ErrorCode code) {
  if (state_ == State::kOpen) next().Reset(code);
}

void CutFilter::Release() {
  if (state_ != State::kOpen) return;  // it is let go of with the reset
  state_ = State::kReleased;
  next().Release();
}

}  // namespace sluice::proxy
