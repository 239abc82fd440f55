// Channel: messages of a handover (proto/sluice/handover/v1/handover.proto) over a MessageSocket.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "handover/message_socket.h"
#include "sluice/handover/v1/handover.pb.h"

namespace sluice::handover {

// `value`, cut to so many bytes, with what is no UTF-8 replaced: protobuf's strings hold nothing else.
std::string ToText(std::string_view value, size_t bytes_max = 4096);

// Not thread-safe.
class Channel {
 public:
  Channel() = default;
  explicit Channel(MessageSocket socket) : socket_(std::move(socket)) {}

  bool open() const { return socket_.open(); }
  int fd() const { return socket_.fd(); }
  void Close() { socket_.Close(); }
  int Release() { return socket_.Release(); }

  // As MessageSocket::Send.
  base::Status Send(const v1::Message& message, std::span<const int> descriptors = {});
  // Tells the peer that this process gives up, as far as it can be told.
  void Fail(const std::string& why);

  struct Received {
    v1::Message message;
    std::vector<Descriptor> descriptors;
  };
  // As MessageSocket::Receive; kInvalidArgument also for what is no message.
  base::Result<std::optional<Received>> Receive(std::chrono::milliseconds timeout);

 private:
  MessageSocket socket_;
};

}  // namespace sluice::handover
