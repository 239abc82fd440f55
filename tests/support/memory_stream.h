// MemoryStream: two connected ends of a byte stream in memory, for tests: full, cut and slow sockets without
// a socket.
//
// Each direction has a bounded buffer. Readiness is told from the worker's inbox, so in the next turn, as a
// reactor would. An end may also be driven by hand: Read and Write work at once. All on one worker (or by the
// thread that turns it).
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "net/stream.h"
#include "runtime/worker.h"

namespace sluice::net {

class MemoryStream final : public Stream {
 public:
  struct Pair {
    std::unique_ptr<MemoryStream> near, far;
  };
  static constexpr size_t kBufferBytes = 64 * 1024;
  // `far_name` is what near.PeerName() says.
  static Pair Make(runtime::Worker& worker, std::string near_name, std::string far_name,
                   size_t buffer_bytes = kBufferBytes);
  ~MemoryStream() override;

  IoResult Read(uint8_t* into, size_t capacity) override;
  IoResult Write(const iovec* parts, size_t count) override;
  void WaitReadable(IoEvents& events) override;
  void WaitWritable(IoEvents& events) override;
  void ShutdownWrite() override;
  void Close() override;
  std::string PeerName() const override { return peer_name_; }

  // Cuts the connection: what is in flight is lost, and both ends get `error` (ECONNRESET) from reads and
  // writes.
  void Break(int error);
  // Room for what this end writes. Less than what is in the buffer: nothing is lost, and nothing more fits.
  void SetBufferBytes(size_t bytes);
  // One Read takes, one Write puts, at most so much.
  void SetCallBytesMax(size_t bytes) { call_bytes_max_ = bytes; }

  // Bytes this end has written and the other has not read.
  size_t unread() const;
  bool closed() const;
  // Calls of Write that took bytes.
  uint64_t writes() const { return writes_; }
  // Times the two ends were told of readiness, each through Worker::Post.
  uint64_t posts() const;

 private:
  struct Wire;
  MemoryStream(std::shared_ptr<Wire> wire, int side, std::string peer_name);

  const std::shared_ptr<Wire> wire_;
  const int side_;
  const std::string peer_name_;
  size_t call_bytes_max_ = SIZE_MAX;
  uint64_t writes_ = 0;
};

// Both directions and their waits. Outlives the ends while a Post is under way.
struct MemoryStream::Wire : std::enable_shared_from_this<Wire> {
  // What one end has written: a ring of bytes.
  struct Way {
    std::vector<uint8_t> bytes;
    size_t head = 0, size = 0;
    size_t limit = 0;
    bool ended = false;  // no more will come

    size_t Room() const { return size < limit ? limit - size : 0; }
    void Put(const uint8_t* data, size_t n) {
      if (size + n > bytes.size()) Grow(size + n);
      for (size_t done = 0; done < n;) {
        size_t at = (head + size) % bytes.size();
        size_t part = std::min(n - done, bytes.size() - at);
        std::memcpy(bytes.data() + at, data + done, part);
        done += part;
        size += part;
      }
    }
    size_t Take(uint8_t* into, size_t n) {
      n = std::min(n, size);
      for (size_t done = 0; done < n;) {
        size_t part = std::min(n - done, bytes.size() - head);
        std::memcpy(into + done, bytes.data() + head, part);
        head = (head + part) % bytes.size();
        done += part;
      }
      size -= n;
      return n;
    }
    void Grow(size_t n) {
      std::vector<uint8_t> larger(std::max(n, limit));
      size_t kept = Take(larger.data(), size);
      bytes = std::move(larger);
      head = 0;
      size = kept;
    }
  };
  struct End {
    IoEvents* reader = nullptr;
    IoEvents* writer = nullptr;
    bool posted = false;
    bool closed = false;
  };

  Wire(runtime::Worker& w, size_t buffer_bytes) : worker(w) {
    for (Way& way : ways) {
      way.limit = buffer_bytes;
      way.bytes.resize(std::max<size_t>(buffer_bytes, 1));
    }
  }

  bool Readable(int side) const { return error != 0 || ways[1 - side].size > 0 || ways[1 - side].ended; }
  bool Writable(int side) const { return error != 0 || ends[1 - side].closed || ways[side].Room() > 0; }

  // Tells the end, in the worker's next turn, if something it waits for is there.
  void Notify(int side) {
    End& end = ends[side];
    bool due = (end.reader != nullptr && Readable(side)) || (end.writer != nullptr && Writable(side));
    if (!due || end.posted) return;
    end.posted = true;
    ++posts;
    worker.Post([self = shared_from_this(), side] { self->Deliver(side); });
  }
  // The listener may close its end or wait again.
  void Deliver(int side) {
    End& end = ends[side];
    end.posted = false;
    if (end.reader != nullptr && Readable(side)) std::exchange(end.reader, nullptr)->OnReadable();
    if (end.writer != nullptr && Writable(side)) std::exchange(end.writer, nullptr)->OnWritable();
  }

  runtime::Worker& worker;
  std::array<Way, 2> ways;  // by the end that writes
  std::array<End, 2> ends;
  int error = 0;
  uint64_t posts = 0;
};

inline MemoryStream::Pair MemoryStream::Make(runtime::Worker& worker, std::string near_name, std::string far_name,
                                             size_t buffer_bytes) {
  auto wire = std::make_shared<Wire>(worker, buffer_bytes);
  Pair pair;
  pair.near.reset(new MemoryStream(wire, 0, std::move(far_name)));
  pair.far.reset(new MemoryStream(wire, 1, std::move(near_name)));
  return pair;
}

inline MemoryStream::MemoryStream(std::shared_ptr<Wire> wire, int side, std::string peer_name)
    : wire_(std::move(wire)), side_(side), peer_name_(std::move(peer_name)) {}

inline MemoryStream::~MemoryStream() { Close(); }

inline IoResult MemoryStream::Read(uint8_t* into, size_t capacity) {
  if (closed()) return {IoResult::Kind::kEof, 0, 0};
  if (wire_->error != 0) return {IoResult::Kind::kError, 0, wire_->error};
  Wire::Way& way = wire_->ways[1 - side_];
  if (way.size == 0) return {way.ended ? IoResult::Kind::kEof : IoResult::Kind::kWouldBlock, 0, 0};
  size_t n = way.Take(into, std::min(capacity, call_bytes_max_));
  wire_->Notify(1 - side_);
  return {IoResult::Kind::kOk, n, 0};
}

inline IoResult MemoryStream::Write(const iovec* parts, size_t count) {
  if (closed() || wire_->ways[side_].ended || wire_->ends[1 - side_].closed) return {IoResult::Kind::kError, 0, EPIPE};
  if (wire_->error != 0) return {IoResult::Kind::kError, 0, wire_->error};
  Wire::Way& way = wire_->ways[side_];
  size_t done = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t n = std::min({parts[i].iov_len, way.Room(), call_bytes_max_ - done});
    way.Put(static_cast<const uint8_t*>(parts[i].iov_base), n);
    done += n;
    if (n < parts[i].iov_len) break;
  }
  if (done == 0) return {IoResult::Kind::kWouldBlock, 0, 0};
  ++writes_;
  wire_->Notify(1 - side_);
  return {IoResult::Kind::kOk, done, 0};
}

inline void MemoryStream::WaitReadable(IoEvents& events) {
  if (closed()) return;
  SLUICE_CHECK(wire_->ends[side_].reader == nullptr);  // one wait at a time
  wire_->ends[side_].reader = &events;
  wire_->Notify(side_);
}

inline void MemoryStream::WaitWritable(IoEvents& events) {
  if (closed()) return;
  SLUICE_CHECK(wire_->ends[side_].writer == nullptr);
  wire_->ends[side_].writer = &events;
  wire_->Notify(side_);
}

inline void MemoryStream::ShutdownWrite() {
  wire_->ways[side_].ended = true;
  wire_->Notify(1 - side_);
}

inline void MemoryStream::Close() {
  if (closed()) return;
  Wire::End& end = wire_->ends[side_];
  end.closed = true;
  end.reader = end.writer = nullptr;
  ShutdownWrite();
}

inline void MemoryStream::Break(int error) {
  wire_->error = error;
  for (Wire::Way& way : wire_->ways) way.head = way.size = 0;
  wire_->Notify(0);
  wire_->Notify(1);
}

inline void MemoryStream::SetBufferBytes(size_t bytes) {
  wire_->ways[side_].limit = bytes;
  wire_->Notify(side_);
}

inline size_t MemoryStream::unread() const { return wire_->ways[side_].size; }
inline bool MemoryStream::closed() const { return wire_->ends[side_].closed; }
inline uint64_t MemoryStream::posts() const { return wire_->posts; }

}  // namespace sluice::net
