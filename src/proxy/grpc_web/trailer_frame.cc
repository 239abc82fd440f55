#include "proxy/grpc_web/trailer_frame.h"

#include "proxy/grpc_web/message_framing.h"

namespace sluice::proxy::grpc_web {

std::string MakeTrailerFrame(const http2::HeaderList& trailers) {
  std::string frame(MessageFraming::kPrefixBytes, '\0');
  for (const http2::Field* field : trailers) {
    if (field->value().find_first_of("\r\n") != std::string_view::npos) continue;  // RFC 9113 8.2.1 forbids it
    frame.append(field->name()).append(": ").append(field->value()).append("\r\n");
  }
  const size_t size = frame.size() - MessageFraming::kPrefixBytes;
  frame[0] = static_cast<char>(MessageFraming::kTrailers);
  for (size_t i = 1; i < MessageFraming::kPrefixBytes; ++i) frame[i] = static_cast<char>(size >> (8 * (4 - i)) & 0xff);
  return frame;
}

}  // namespace sluice::proxy::grpc_web
