#include "hostile/frame_peer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::hostile {

FramePeer::FramePeer(Loop& loop, size_t preface, OnBlock on_block, OnFrame on_frame, Wire::OnEnd on_end)
    : on_block_(std::move(on_block)),
      on_frame_(std::move(on_frame)),
      preface_left_(preface),
      wire_(
          loop, [this](std::string_view bytes) { Bytes(bytes); }, std::move(on_end)) {
  nghttp2_hd_inflate_new(&inflater_);
}

FramePeer::~FramePeer() { nghttp2_hd_inflate_del(inflater_); }

void FramePeer::Bytes(std::string_view bytes) {
  const size_t skip = std::min(preface_left_, bytes.size());
  preface_left_ -= skip;
  in_.append(bytes.substr(skip));
  for (const h2::Frame& frame : h2::TakeFrames(in_)) {
    if (!wire_.open()) return;
    if (frame.type == h2::kHeaders || frame.type == h2::kContinuation)
      BlockPart(frame);
    else
      on_frame_(frame);
  }
}

void FramePeer::BlockPart(const h2::Frame& frame) {
  std::string_view part = frame.payload;
  if (frame.type == h2::kHeaders) {
    block_.clear();
    block_stream_ = frame.stream;
    block_ends_ = frame.has(h2::kEndStream);
    size_t padding = 0;
    if (frame.has(h2::kPadded) && !part.empty()) {
      padding = static_cast<uint8_t>(part[0]);
      part.remove_prefix(1);
    }
    if (frame.has(h2::kPriorityFlag)) part.remove_prefix(std::min<size_t>(5, part.size()));
    part.remove_suffix(std::min(padding, part.size()));
  }
  block_ += part;
  if (!frame.has(h2::kEndHeaders)) return;
  Fields fields;
  const auto* at = reinterpret_cast<const uint8_t*>(block_.data());
  size_t left = block_.size();
  while (!broken_) {
    nghttp2_nv field;
    int flags = 0;
    const auto used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, at, left, 1);
    if (used < 0) {
      broken_ = true;
      break;
    }
    at += used;
    left -= static_cast<size_t>(used);
    if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
      fields.emplace_back(std::string(reinterpret_cast<char*>(field.name), field.namelen),
                          std::string(reinterpret_cast<char*>(field.value), field.valuelen));
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
      nghttp2_hd_inflate_end_headers(inflater_);
      break;
    }
    if (left == 0 && (flags & NGHTTP2_HD_INFLATE_EMIT) == 0) break;
  }
  on_block_(block_stream_, fields, block_ends_);
}

std::string RawBlock(const Fields& fields, bool indexed) {
  std::string block = h2::Block(fields);
  if (!indexed) return block;
  std::string out;
  for (const auto& field : fields) {
    std::string one = h2::Block({field});
    one[0] = 0x40;  // RFC 7541 6.2.1
    out += one;
  }
  return out;
}

std::string BlockFrames(uint32_t stream, const std::string& block, bool end, size_t part) {
  const uint8_t end_flag = end ? h2::kEndStream : 0;
  if (block.size() <= part) return h2::Headers(stream, block, h2::kEndHeaders | end_flag);
  std::string out = h2::Headers(stream, block.substr(0, part), end_flag);
  for (size_t at = part; at < block.size(); at += part)
    out += h2::Continuation(stream, block.substr(at, part), at + part >= block.size() ? h2::kEndHeaders : 0);
  return out;
}

}  // namespace sluice::hostile
