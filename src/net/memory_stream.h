// MemoryStream: two connected ends of a byte stream in memory, for tests: full, cut and slow sockets without
// a socket.
//
// Each direction has a bounded buffer. Readiness is told from the worker's inbox, so in the next turn, as a
// reactor would. An end may also be driven by hand: Read and Write work at once. All on one worker (or by the
// thread that turns it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

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

}  // namespace sluice::net
