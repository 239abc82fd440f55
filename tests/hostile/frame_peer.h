// FramePeer: one end of an HTTP/2 connection that is read frame by frame. Header blocks are put together and decoded by
// libnghttp2; what is sent is bytes that its owner makes, right or wrong.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "hostile/move.h"
#include "hostile/wire.h"
#include "support/h2_frames.h"

namespace sluice::hostile {

class FramePeer {
 public:
  // The first frame of a block has its fields when the block is whole; `ended`: it had END_STREAM.
  using OnBlock = std::function<void(uint32_t stream, const Fields& fields, bool ended)>;
  // Every other frame. Both may close the wire, and must not destroy the peer.
  using OnFrame = std::function<void(const h2::Frame& frame)>;

  // `preface`: bytes at the beginning that are no frames.
  FramePeer(Loop& loop, size_t preface, OnBlock on_block, OnFrame on_frame, Wire::OnEnd on_end);
  ~FramePeer();

  Wire& wire() { return wire_; }
  void Send(std::string_view bytes) { wire_.Send(bytes); }
  // What the peer sends is no HPACK (or its tables are not ours any more): its blocks are not decoded.
  bool broken() const { return broken_; }
  void StopDecoding() { broken_ = true; }

 private:
  void Bytes(std::string_view bytes);
  void BlockPart(const h2::Frame& frame);

  OnBlock on_block_;
  OnFrame on_frame_;
  size_t preface_left_;
  std::string in_, block_;
  uint32_t block_stream_ = 0;
  bool block_ends_ = false, broken_ = false;
  nghttp2_hd_inflater* inflater_ = nullptr;
  Wire wire_;
};

// A header block of literals; as h2::Block, for any bytes. `indexed`: each goes into the peer's table.
std::string RawBlock(const Fields& fields, bool indexed = false);
// HEADERS with `block`, and CONTINUATION where it is longer than a frame.
std::string BlockFrames(uint32_t stream, const std::string& block, bool end, size_t part = 16384);

}  // namespace sluice::hostile
