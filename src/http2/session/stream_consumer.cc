// What a consumer asks of a Stream (stream_io.h), carried out by its session. Apart from stream.cc, so that a stream is
// below its session and knows it by name only.
#include "http2/session/session.h"

namespace sluice::http2 {

std::string_view Stream::connection_end() const {
  return session_ == nullptr ? std::string_view() : session_->failure_;
}

void Stream::SendHeaders(const HeaderList& fields, bool end_stream) {
  if (!send_done_) session_->SendHeaders(*this, fields, end_stream);
}

void Stream::SendData(const base::Slice& bytes, bool end_stream) {
  if (!send_done_) session_->SendData(*this, bytes, end_stream);
}

void Stream::Consume(size_t bytes) {
  if (unconsumed_ != 0) session_->Consume(*this, bytes);
}

void Stream::Reset(ErrorCode code) {
  events_ = nullptr;  // also of one that the connection's end has closed and that has not been told yet
  if (!closed_) session_->ResetByConsumer(*this, code);
}

uint32_t Stream::peer_header_list_max() const {
  return session_ != nullptr ? session_->peer_header_list_max() : UINT32_MAX;
}

Stream::Oversized Stream::oversized() const {
  return {oversized_bytes_, session_->options_.header_list_bytes_max, session_->options_.header_count_max};
}

void Stream::Release() {
  if (session_ == nullptr) {
    StreamPool::Free(this);
  } else {
    session_->ReleaseByConsumer(*this);
  }
}

}  // namespace sluice::http2
