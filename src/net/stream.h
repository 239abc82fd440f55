// Stream: a connected byte stream that never blocks: TCP, Unix socket, TLS over either, or memory in tests.
//
// Readiness is asked for and told once: WaitReadable(events) leads to one OnReadable(). Everything happens on the
// worker the stream was made on. Not thread-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace sluice::net {

class IoEvents {
 public:
  virtual void OnReadable() = 0;
  virtual void OnWritable() = 0;

 protected:
  ~IoEvents() = default;
};

struct IoResult {
  enum class Kind : uint8_t { kOk, kWouldBlock, kEof, kError };
  Kind kind = Kind::kOk;
  size_t bytes = 0;
  int error = 0;  // errno, for kError
  // What the peer made the stream do in a Read beside carrying bytes: messages of TLS that no one needs many of.
  uint32_t useless = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;
  // Up to `capacity` bytes into `into`. kOk has at least one byte.
  virtual IoResult Read(uint8_t* into, size_t capacity) = 0;
  // Gathers; kOk may be partial.
  virtual IoResult Write(const iovec* parts, size_t count) = 0;
  // One OnReadable() / OnWritable() later, from the worker's reactor; none after Close(). One wait of each kind at a
  // time.
  virtual void WaitReadable(IoEvents& events) = 0;
  virtual void WaitWritable(IoEvents& events) = 0;
  // Half-close: the peer reads the end after what was written.
  virtual void ShutdownWrite() = 0;
  // Idempotent. Forgets waits; the destructor does it too.
  virtual void Close() = 0;
  // "127.0.0.1:40000", "unix:" for a peer without a name.
  virtual std::string PeerName() const = 0;
  // After kError: what was wrong, for a person, where there is more to say than the errno. Else empty.
  virtual std::string Problem() const { return {}; }
};

}  // namespace sluice::net
