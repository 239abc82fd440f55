// Calls that failed, and hot keys, as messages.
#include <algorithm>

#include "admin/convert.h"

namespace sluice::admin {
namespace {

// Protobuf takes UTF-8 only, and clients send what they like: other bytes than printable ASCII as \xNN.
std::string Escaped(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      out += c;
    } else {
      out.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  return out;
}

uint64_t Micros(base::Nanos span) { return static_cast<uint64_t>(std::max<int64_t>(0, span.count() / 1000)); }

}  // namespace

void ToMessage(const FailedCallsView::Call& view, v1::FailedCall& message) {
  message.set_call_id(view.id.ToString());
  message.set_request_id(Escaped(view.request_id));
  message.set_ended_ago_ms(Milliseconds(view.ago));
  message.set_peer(view.peer);
  message.set_client(Escaped(view.client));
  message.set_authority(Escaped(view.authority));
  message.set_path(Escaped(view.path));
  message.set_route(Escaped(view.route));
  message.set_cluster(Escaped(view.cluster));
  message.set_endpoint(Escaped(view.endpoint));
  message.set_status(std::string(ToString(view.status)));
  message.set_reason(view.cause);
  message.set_processed(view.processed);
  message.set_message(Escaped(view.detail));
  message.set_limit(Escaped(view.limit));
  message.set_waited(Escaped(view.waits));
  message.set_tries(Escaped(view.tries));
  message.set_cache(view.cache);
  message.set_attempts(view.attempts);
  message.set_request_bytes(view.request_bytes);
  message.set_response_bytes(view.response_bytes);
  message.set_connecting_us(Micros(view.connecting));
  if (view.to_upstream.count() >= 0) message.set_sent_us(Micros(view.to_upstream));
  if (view.to_response.count() >= 0) message.set_response_us(Micros(view.to_response));
  message.set_total_us(Micros(view.total));
  message.set_worker(view.id.worker());
}

void ToMessage(const HotKeysView& view, v1::ClusterHotKeys& message) {
  message.set_cluster(Escaped(view.cluster));
  message.set_hidden(view.hidden);
  message.set_samples(view.samples);
  message.set_span_ms(Milliseconds(view.span));
  message.set_floor(view.floor);
  for (const HotKeyView& key : view.keys) {
    v1::HotKey& out = *message.add_keys();
    out.set_key(Escaped(key.key));
    out.set_cut(key.cut);
    out.set_share(key.share);
    out.set_error(key.error);
    out.set_endpoint(Escaped(key.endpoint));
  }
}

}  // namespace sluice::admin
