// WireModel: the far end of a Session, as RFC 9113 has it, with no code of src/http2: hears each frame that the session
// says, knows what it was told, and checks that every frame is whole, in its place and within the windows.
//
//   model.Tell(bytes); session.Feed(bytes); model.Hear(what the output has grown by);
//   session.SendData(...);                  model.Hear(what the output has grown by);
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz/support/nghttp2_hpack.h"
#include "http2/options.h"
#include "support/h2_frames.h"

namespace sluice::fuzz {

class WireModel {
 public:
  WireModel(bool session_is_server, const http2::SessionOptions& options)
      : server_(session_is_server),
        options_(options),
        preface_told_(session_is_server ? 24 : 0),
        preface_heard_(server_ ? 0 : 24) {}

  // Bytes that the session is about to be fed.
  void Tell(std::string_view bytes) {
    told_ += bytes;
    const size_t skip = std::min(preface_told_, told_.size());
    told_.erase(0, skip);
    preface_told_ -= skip;
    size_t at = 0;
    while (told_.size() - at >= 9) {
      const h2::Frame frame = HeadAt(told_, at);
      const size_t length = Length(told_, at);
      // Of DATA the header counts: its whole length was taken from both windows.
      if (frame.type == h2::kData && at >= data_counted_) {
        data_counted_ = at + 9;
        told_connection_.data += length;
        told_streams_[frame.stream].data += length;
      }
      if (told_.size() - at - 9 < length) break;
      const std::string_view payload = std::string_view(told_).substr(at + 9, length);
      if (frame.type == h2::kWindowUpdate && length == 4) {
        (frame.stream == 0 ? told_connection_ : told_streams_[frame.stream]).credit += Word(payload) & 0x7fffffff;
      } else if (frame.type == h2::kSettings && !frame.has(h2::kAck) && length % 6 == 0) {
        settings_.emplace_back(payload);
      } else if (frame.type == h2::kPing && !frame.has(h2::kAck)) {
        ++pings_;
      }
      at += 9 + length;
      data_counted_ = std::max(data_counted_, at);
    }
    told_.erase(0, at);
    data_counted_ = data_counted_ > at ? data_counted_ - at : 0;
  }

  // Bytes that were added to the session's output: whole frames.
  void Hear(std::string_view bytes) {
    if (preface_heard_ > 0 && !bytes.empty()) {
      SLUICE_CHECK(bytes.substr(0, 24) == h2::Preface());
      bytes.remove_prefix(24);
      preface_heard_ = 0;
    }
    while (!bytes.empty()) {
      SLUICE_CHECK(bytes.size() >= 9);
      const std::string head(bytes.substr(0, 9));
      h2::Frame frame = HeadAt(head, 0);
      const size_t length = Length(head, 0);
      // None of ours is larger than what every peer must accept (RFC 9113 4.2).
      SLUICE_CHECK(length <= 16384 && bytes.size() >= 9 + length);
      frame.payload = bytes.substr(9, length);
      SLUICE_CHECK(heard_any_ || frame.type == h2::kSettings);  // RFC 9113 3.4
      heard_any_ = true;
      SLUICE_CHECK(!failed_);  // nothing follows a GOAWAY that ends the connection
      SLUICE_CHECK(block_stream_ == 0 || (frame.type == h2::kContinuation && frame.stream == block_stream_));
      HearFrame(frame);
      bytes.remove_prefix(9 + length);
    }
    SLUICE_CHECK(block_stream_ == 0);
  }
  // Feed has failed: the last word was a GOAWAY with a code.
  void Failed() {
    SLUICE_CHECK(goaway_heard_ && goaway_code_ != 0);
    failed_ = true;
  }
  // Nothing more may be said, though there was no GOAWAY.
  void Closed() { failed_ = true; }

  // Streams that the session has opened (client), in order.
  const std::vector<uint32_t>& requests() const { return requests_; }
  bool goaway_heard() const { return goaway_heard_; }
  // Replies to PING and SETTINGS heard so far.
  uint64_t replies() const { return replies_; }

 private:
  struct Way {
    uint64_t data = 0;    // lengths of DATA frames
    uint64_t credit = 0;  // increments
  };
  // What the session has said on one stream.
  struct Said {
    int64_t initial = 0;  // the window that it began with, and changes of the setting since
    uint64_t data = 0;
    uint64_t credit = 0;
    bool begun = false, head = false, end = false, reset = false;
  };

  static size_t Length(std::string_view bytes, size_t at) {
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(bytes[at + i])); };
    return byte(0) << 16 | byte(1) << 8 | byte(2);
  }
  static h2::Frame HeadAt(std::string_view bytes, size_t at) {
    return {static_cast<uint8_t>(bytes[at + 3]),
            static_cast<uint8_t>(bytes[at + 4]),
            Word(bytes.substr(at + 5)) & 0x7fffffff,
            {}};
  }
  static uint32_t Word(std::string_view bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
  }

  void HearFrame(const h2::Frame& frame) {
    const size_t length = frame.payload.size();
    switch (frame.type) {
      case h2::kData:
        return HearData(frame);
      case h2::kHeaders:
        SLUICE_CHECK(!frame.has(h2::kPadded) && !frame.has(h2::kPriorityFlag));
        block_end_ = frame.has(h2::kEndStream);
        return HearBlock(frame);
      case h2::kContinuation:
        SLUICE_CHECK(block_stream_ != 0);
        return HearBlock(frame);
      case h2::kRstStream:
        SLUICE_CHECK(length == 4 && frame.stream != 0);
        said_[frame.stream].reset = true;
        return;
      case h2::kSettings:
        SLUICE_CHECK(frame.stream == 0 && length % 6 == 0);
        if (frame.has(h2::kAck)) {
          SLUICE_CHECK(length == 0);
          ++replies_;
          ApplySettings();
        }
        return;
      case h2::kPing:
        SLUICE_CHECK(frame.stream == 0 && length == 8);
        if (!frame.has(h2::kAck)) return;
        SLUICE_CHECK(++pings_answered_ <= pings_);
        ++replies_;
        return;
      case h2::kGoaway: {
        SLUICE_CHECK(frame.stream == 0 && length >= 8);
        const uint32_t last = frame.Word();
        SLUICE_CHECK(!goaway_heard_ || last <= goaway_last_);  // RFC 9113 6.8
        goaway_last_ = last;
        goaway_code_ = frame.Word(4);
        goaway_heard_ = true;
        return;
      }
      case h2::kWindowUpdate:
        return HearWindowUpdate(frame);
      default:
        SLUICE_CHECK(false);  // PRIORITY, PUSH_PROMISE and what is unknown: we never say it
    }
  }

  void HearData(const h2::Frame& frame) {
    SLUICE_CHECK(frame.stream != 0 && !frame.has(h2::kPadded));
    Said& said = said_[frame.stream];
    SLUICE_CHECK(said.head && !said.end && !said.reset);
    const int64_t length = static_cast<int64_t>(frame.payload.size());
    said.data += static_cast<uint64_t>(length);
    sent_ += static_cast<uint64_t>(length);
    // RFC 9113 6.9.1: within both windows. One of no length needs none.
    if (length > 0) {
      SLUICE_CHECK(sent_ <= 65535 + told_connection_.credit);
      SLUICE_CHECK(static_cast<int64_t>(said.data) <=
                   said.initial + static_cast<int64_t>(told_streams_[frame.stream].credit));
    }
    said.end = frame.has(h2::kEndStream);
  }

  void HearBlock(const h2::Frame& frame) {
    SLUICE_CHECK(frame.stream != 0);
    block_ += frame.payload;
    block_stream_ = frame.stream;
    if (!frame.has(h2::kEndHeaders)) return;
    block_stream_ = 0;
    const std::optional<Pairs> fields = inflater_.Decode(std::exchange(block_, {}));
    SLUICE_CHECK(fields.has_value());
    Said& said = said_[frame.stream];  // credit may have been said before
    SLUICE_CHECK(!said.end && !said.reset);
    if (!said.begun) said.initial = peer_window_;
    said.begun = true;
    if (!server_ && !said.head) {
      SLUICE_CHECK(frame.stream % 2 == 1 && (requests_.empty() || frame.stream > requests_.back()));  // RFC 9113 5.1.1
      requests_.push_back(frame.stream);
    }
    const bool interim =
        server_ && !fields->empty() && fields->front().first == ":status" && fields->front().second[0] == '1';
    // What follows the head is trailers, and they end the stream (RFC 9113 8.1).
    SLUICE_CHECK(!said.head || (block_end_ && !interim));
    said.head |= !interim;
    said.end = block_end_;
  }

  void HearWindowUpdate(const h2::Frame& frame) {
    SLUICE_CHECK(frame.payload.size() == 4);
    const uint32_t increment = frame.Word();
    SLUICE_CHECK(increment > 0 && increment <= 0x7fffffff);
    if (frame.stream == 0) {
      credited_ += increment;
      SLUICE_CHECK(65535 + credited_ - std::min(credited_ + 65535, told_connection_.data) <=
                   options_.connection_window_bytes);
      return;
    }
    SLUICE_CHECK(!said_[frame.stream].reset);
    uint64_t& credit = said_[frame.stream].credit;
    credit += increment;
    const uint64_t data = told_streams_[frame.stream].data;
    SLUICE_CHECK(options_.stream_window_bytes + credit <= options_.stream_window_bytes + data);
  }

  // The session's ACK stands where it has applied the oldest of what it was told (RFC 9113 6.5.3).
  void ApplySettings() {
    SLUICE_CHECK(!settings_.empty());
    const std::string payload = std::move(settings_.front());
    settings_.pop_front();
    int64_t window = peer_window_;
    for (size_t at = 0; at < payload.size(); at += 6) {
      const std::string_view entry = std::string_view(payload).substr(at, 6);
      const uint32_t value = Word(entry.substr(2));
      if (entry[0] != 0) continue;
      if (entry[1] == 1) inflater_.SetTableBytesMax(value);
      if (entry[1] == 4) window = value;
    }
    for (auto& [id, said] : said_) said.initial += window - peer_window_;
    peer_window_ = window;
  }

  const bool server_;
  const http2::SessionOptions options_;

  // Told.
  size_t preface_told_;
  std::string told_;         // what is not a whole frame yet
  size_t data_counted_ = 0;  // up to where in it DATA was counted
  Way told_connection_;
  std::map<uint32_t, Way> told_streams_;
  std::deque<std::string> settings_;  // not acknowledged yet
  uint64_t pings_ = 0;

  // Heard.
  size_t preface_heard_;
  bool heard_any_ = false, failed_ = false, goaway_heard_ = false;
  uint32_t goaway_last_ = 0, goaway_code_ = 0;
  Inflater inflater_;
  std::string block_;
  uint32_t block_stream_ = 0;
  bool block_end_ = false;
  int64_t peer_window_ = 65535;
  std::map<uint32_t, Said> said_;
  std::vector<uint32_t> requests_;
  uint64_t sent_ = 0, credited_ = 0, pings_answered_ = 0, replies_ = 0;
};

}  // namespace sluice::fuzz
