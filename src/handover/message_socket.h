// MessageSocket: one end of the socket between an old and a new process: messages with their bounds, and descriptors
// beside them. A pair of SOCK_SEQPACKET without a name: only a child that inherits an end can speak.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::handover {

// A descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }  // -1: none
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Not thread-safe.
class MessageSocket {
 public:
  static constexpr size_t kBytesMax = 64 << 10;   // of a message
  static constexpr size_t kDescriptorsMax = 250;  // beside one: the kernel's SCM_MAX_FD is 253
  static constexpr int kBufferBytes = 1 << 20;    // that may be under way, as far as the system lets

  // Not open.
  MessageSocket() = default;
  // Owns `fd`. kInvalidArgument: it is no socket of that kind.
  static base::Result<MessageSocket> Adopt(int fd);
  // Two ends; the second one is for a child. kIo.
  static base::Result<std::pair<MessageSocket, Descriptor>> MakePair();

  bool open() const { return fd_.get() >= 0; }
  int fd() const { return fd_.get(); }
  void Close() { fd_ = Descriptor(); }
  int Release() { return fd_.Release(); }

  // All of it or nothing; never blocks. kBusy: there is no room now. kIo: the peer is gone. kTooLarge.
  base::Status Send(std::string_view message, std::span<const int> descriptors = {});

  struct Received {
    std::string message;
    std::vector<Descriptor> descriptors;  // no child inherits them
  };
  // The next message; waits for it for `timeout` at most. nullopt: none has come. kIo: the peer is gone.
  // kInvalidArgument: it is longer than a message may be.
  base::Result<std::optional<Received>> Receive(std::chrono::milliseconds timeout);

 private:
  explicit MessageSocket(int fd) : fd_(fd) {}
  Descriptor fd_;
};

}  // namespace sluice::handover
