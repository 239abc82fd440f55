#include "proxy/call/buffered_request.h"

#include "proxy/call/call.h"

namespace sluice::proxy {

void BufferedRequest::Start(CallContext& context) {
  const bool whole = ended && parts.empty();
  http2::StreamEvents* events = Call::Start(context, *stream, std::move(client), std::move(fields), whole, started);
  if (events == nullptr) return;  // the stream was released
  stream->SetEvents(*events);
  for (size_t i = 0; i < parts.size(); ++i) events->OnData(parts[i], ended && i + 1 == parts.size());
  if (trailers) events->OnHeaders(std::move(*trailers), true);
  if (reset) events->OnReset(reset->code, reset->cause);
}

}  // namespace sluice::proxy
