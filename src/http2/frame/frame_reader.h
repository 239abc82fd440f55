// FrameReader: bytes to frames, wherever reads have cut them.
//
// Frames are handed on in place. A frame that a read has cut is joined in a buffer of its own size; DATA is never
// joined: what has come of it is handed on. Holds no more than one frame, whose size its handler has agreed to. Not
// thread-safe.
//
// A handler has, all called from inside Feed:
//   bool done()                                        nothing more is wanted
//   void OnBadPreface()                                it is done
//   bool CheckFrameHeader(const FrameHeader&)          false: it has failed. May be asked again about one frame
//   void HandleFrame(const FrameHeader&, payload)      a whole frame; not DATA
//   void BeginData(const FrameHeader&, padding)        calls ExpectData; its pad length field has been taken off
//   void HandleData(const Slice& read, at, bytes)      what has come of the DATA that is expected
//   void AfterStep()                                   nothing of the reader's is on the stack but Feed
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/slice.h"
#include "http2/frame/frame.h"

namespace sluice::http2 {

class FrameReader {
 public:
  // `preface`: the client's comes first (RFC 9113 3.4).
  explicit FrameReader(bool preface) : preface_left_(preface ? kClientPreface.size() : 0) {}

  // The preface has not come whole.
  bool awaits_preface() const { return preface_left_ > 0; }
  // A frame has begun and is not whole. Of DATA that is only the head.
  bool holds_part() const { return carry_bytes_ != 0; }

  // Of BeginData: how much of the payload is data for HandleData, and how much behind it is dropped.
  void ExpectData(uint32_t data, uint32_t dropped) {
    data_left_ = data;
    skip_left_ = dropped;
  }
  // Of the DATA frame that is handed on: what has not come yet.
  uint32_t data_left() const { return data_left_; }

  template <typename Handler>
  void Feed(const base::Slice& bytes, Handler& handler) {
    const uint8_t* p = bytes.data();
    const uint8_t* const end = p + bytes.size();
    if (preface_left_ > 0) p = TakePreface(p, end, handler);
    while (p != end && !handler.done()) {
      if (data_left_ + skip_left_ > 0) {
        p = TakeData(bytes, p, end, handler);
      } else if (carry_bytes_ > 0) {
        p = TakeCarry(p, end, handler);
      } else {
        p = TakeFrame(p, end, handler);
      }
      handler.AfterStep();
    }
  }

 private:
  template <typename Handler>
  const uint8_t* TakePreface(const uint8_t* p, const uint8_t* end, Handler& handler) {
    const size_t n = std::min<size_t>(preface_left_, static_cast<size_t>(end - p));
    const char* expected = kClientPreface.data() + kClientPreface.size() - preface_left_;
    if (n > 0 && std::memcmp(p, expected, n) != 0) {
      handler.OnBadPreface();
      return end;
    }
    preface_left_ -= n;
    return p + n;
  }

  // The frame at p, with all its bytes if possible; else what has come of it goes aside.
  template <typename Handler>
  const uint8_t* TakeFrame(const uint8_t* p, const uint8_t* end, Handler& handler) {
    const size_t available = static_cast<size_t>(end - p);
    if (available >= kFrameHeaderBytes) {
      const FrameHeader frame = ReadFrameHeader(p);
      if (!handler.CheckFrameHeader(frame)) return end;
      if (frame.type == FrameType::kData) {
        const size_t head = kFrameHeaderBytes + (frame.has(kFlagPadded) && frame.length > 0 ? 1 : 0);
        if (available >= head) {
          handler.BeginData(frame, head > kFrameHeaderBytes ? p[kFrameHeaderBytes] : 0);
          return p + head;
        }
      } else if (available >= kFrameHeaderBytes + frame.length) {
        handler.HandleFrame(frame, p + kFrameHeaderBytes);
        return p + kFrameHeaderBytes + frame.length;
      }
    }
    return TakeCarry(p, end, handler);
  }

  // Joins a frame that came in pieces.
  template <typename Handler>
  const uint8_t* TakeCarry(const uint8_t* p, const uint8_t* end, Handler& handler) {
    // Until carry_bytes_ is `upto`; `to` is where the next byte goes.
    auto fill = [&](uint8_t* to, size_t upto) {
      const size_t n = std::min<size_t>(upto - carry_bytes_, static_cast<size_t>(end - p));
      if (n > 0) std::memcpy(to, p, n);
      carry_bytes_ += static_cast<uint32_t>(n);
      p += n;
      return carry_bytes_ == upto;
    };
    if (carry_bytes_ < kFrameHeaderBytes) {
      if (!fill(head_.data() + carry_bytes_, kFrameHeaderBytes)) return p;
      if (!handler.CheckFrameHeader(ReadFrameHeader(head_.data()))) return end;
    }
    const FrameHeader frame = ReadFrameHeader(head_.data());
    if (frame.type == FrameType::kData) {
      const bool padded = frame.has(kFlagPadded) && frame.length > 0;
      if (padded && !fill(head_.data() + kFrameHeaderBytes, kFrameHeaderBytes + 1)) return p;
      carry_bytes_ = 0;
      handler.BeginData(frame, padded ? head_[kFrameHeaderBytes] : 0);
      return p;
    }
    if (frame.length > 0) {
      if (carry_.empty()) carry_ = base::Slice::Uninitialized(frame.length);
      uint8_t* const payload = const_cast<uint8_t*>(carry_.data());  // the block has no other holder
      if (!fill(payload + (carry_bytes_ - kFrameHeaderBytes), kFrameHeaderBytes + frame.length)) return p;
    }
    carry_bytes_ = 0;
    const base::Slice payload = std::move(carry_);
    handler.HandleFrame(frame, payload.data());
    return p;
  }

  template <typename Handler>
  const uint8_t* TakeData(const base::Slice& bytes, const uint8_t* p, const uint8_t* end, Handler& handler) {
    const uint32_t n = std::min<uint32_t>(data_left_, static_cast<uint32_t>(end - p));
    if (n > 0) {
      data_left_ -= n;
      handler.HandleData(bytes, static_cast<size_t>(p - bytes.data()), n);
      p += n;
    }
    if (data_left_ == 0) {
      const uint32_t skipped = std::min<uint32_t>(skip_left_, static_cast<uint32_t>(end - p));
      skip_left_ -= skipped;
      p += skipped;
    }
    return p;
  }

  size_t preface_left_;
  uint32_t carry_bytes_ = 0;  // of head and payload
  // Of the DATA frame that is handed on.
  uint32_t data_left_ = 0;
  uint32_t skip_left_ = 0;  // padding, or all of a frame that is not handed on
  // A frame whose bytes have not all come. head_ has room for DATA's pad length too; other payloads go to carry_.
  std::array<uint8_t, kFrameHeaderBytes + 1> head_;
  base::Slice carry_;
};

}  // namespace sluice::http2
