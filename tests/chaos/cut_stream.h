// CutStream: the proxy's end of a connection in memory that reads and writes in pieces of chance, and records what is
// written.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "chaos/dice.h"
#include "chaos/record.h"
#include "support/memory_stream.h"

namespace sluice::chaos {

class CutStream final : public net::Stream {
 public:
  // One read takes 1..read_max bytes, one write puts 1..write_max; 0: as many as there are.
  CutStream(std::unique_ptr<net::MemoryStream> stream, Record& record, uint64_t number, Dice dice, size_t read_max,
            size_t write_max)
      : stream_(std::move(stream)),
        record_(record),
        number_(number),
        dice_(dice),
        read_max_(read_max),
        write_max_(write_max) {}

  net::IoResult Read(uint8_t* into, size_t capacity) override {
    return stream_->Read(into, std::min(capacity, Piece(read_max_)));
  }
  net::IoResult Write(const iovec* parts, size_t count) override {
    stream_->SetCallBytesMax(Piece(write_max_));
    const net::IoResult result = stream_->Write(parts, count);
    stream_->SetCallBytesMax(SIZE_MAX);
    for (size_t i = 0, left = result.kind == net::IoResult::Kind::kOk ? result.bytes : 0; left > 0; ++i) {
      const size_t n = std::min(left, parts[i].iov_len);
      record_.Wrote(number_, {static_cast<const char*>(parts[i].iov_base), n});
      left -= n;
    }
    return result;
  }
  void WaitReadable(net::IoEvents& events) override { stream_->WaitReadable(events); }
  void WaitWritable(net::IoEvents& events) override { stream_->WaitWritable(events); }
  void ShutdownWrite() override { stream_->ShutdownWrite(); }
  void Close() override { stream_->Close(); }
  std::string PeerName() const override { return stream_->PeerName(); }

 private:
  size_t Piece(size_t max) { return max == 0 ? SIZE_MAX : dice_.In(1, max); }

  const std::unique_ptr<net::MemoryStream> stream_;
  Record& record_;
  const uint64_t number_;
  Dice dice_;
  const size_t read_max_, write_max_;
};

}  // namespace sluice::chaos
