#include "proxy/call/response_sink.h"

namespace sluice::proxy {

ResponseSink::Closed ResponseSink::kClosed;

}  // namespace sluice::proxy
