// Goaway: what either side of a session has said of its end (RFC 9113 6.8). A plain value.
//
//   ours:   kNone -> kAnnounced (2^31-1 and a PING: requests on their way are still taken) -> kBinding
//   theirs: once received, no stream of ours is opened any more
//
// Invariant: the last id that we tell never grows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "http2/error_code.h"
#include "http2/frame/frame.h"

namespace sluice::http2 {

class Goaway {
 public:
  bool received() const { return received_; }
  bool sent() const { return ours_ != Ours::kNone; }
  bool announced() const { return ours_ == Ours::kAnnounced; }
  bool binding() const { return ours_ == Ours::kBinding; }
  // Streams of the peer above this one are ignored.
  uint32_t last_id() const { return last_id_; }

  void Receive(ErrorCode code) {
    received_ = true;
    in_order_ = code == ErrorCode::kNoError;
  }
  // The peer's last GOAWAY names no error.
  bool received_in_order() const { return received_ && in_order_; }
  void Announce() { ours_ = Ours::kAnnounced; }
  // From here on `last_peer_id` is the last stream that we take, or a lower one that we have told. Returns what to
  // tell.
  uint32_t Bind(uint32_t last_peer_id) {
    ours_ = Ours::kBinding;
    return Lower(last_peer_id);
  }
  // The same of a connection that ends at once.
  uint32_t Lower(uint32_t last_peer_id) { return last_id_ = std::min(last_id_, last_peer_id); }

 private:
  enum class Ours : uint8_t { kNone, kAnnounced, kBinding };

  bool received_ = false, in_order_ = false;
  Ours ours_ = Ours::kNone;
  uint32_t last_id_ = kStreamIdMax;
};

}  // namespace sluice::http2
