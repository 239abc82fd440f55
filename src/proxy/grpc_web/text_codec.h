// TextDecoder, TextEncoder: base64 of application/grpc-web-text, piece by piece (RFC 4648 section 4; gRPC-Web,
// "Text-encoded streams").
//
// Padding may stand inside of the stream, where the sender flushed: each group of four characters stands for itself.
// Both keep a part of one group between two pieces, and nothing else. Values; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/slice.h"

namespace sluice::proxy::grpc_web {

class TextDecoder {
 public:
  // Appends nothing to what it returned before: `*out` is what `text` completes, perhaps empty. False: a character that
  // base64 does not have, or padding where there can be none; the decoder is of no use any more.
  bool Decode(std::string_view text, base::Slice* out);
  // The text may end here: no group is begun. Padding is mandatory, as it is to Envoy and to gRPC-Web's own library.
  bool complete() const { return held_ == 0; }
  // Characters of a group that is not complete, 0..3.
  size_t held() const { return held_; }

 private:
  // One more character. False: it cannot stand here.
  bool Add(char c, uint8_t*& to);

  uint32_t group_ = 0;  // the values of its characters so far, six bits each
  uint8_t held_ = 0;    // characters of the group so far, 0..3
  uint8_t padding_ = 0;
};

class TextEncoder {
 public:
  // The text of what was held and `bytes`. `flush`: all of it, with padding; else up to two bytes are held until the
  // next call. Empty if there is nothing to say.
  base::Slice Encode(std::string_view bytes, bool flush);
  // Bytes that wait for more, 0..2.
  size_t held() const { return held_; }

 private:
  std::array<uint8_t, 2> carry_{};
  uint8_t held_ = 0;
};

}  // namespace sluice::proxy::grpc_web
