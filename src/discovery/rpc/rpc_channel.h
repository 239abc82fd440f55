// RpcChannel: a way to one server of a source, over gRPC's library. Sources are the control plane: what the library
// costs there is not in the price of a call.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

namespace grpc {
class Channel;
}

namespace sluice::discovery {

// What a channel is opened with.
struct RpcTarget {
  std::string address;  // host:port, or what else gRPC can resolve
  // Without: plaintext. The texts of PEM files; without `ca` the system's authorities are trusted, without a
  // certificate the server cannot tell our identity.
  bool tls = false;
  std::string ca, certificate, key;
  std::string server_name;  // the name that the server's certificate must have; empty: that of the address
  // A PING after this long without anything from the server, while a stream is open. Servers have a least interval:
  // grpc-go's default is 5 minutes.
  std::chrono::milliseconds keepalive{300000};
};

// Thread-safe. It connects when the first stream begins, and shares no connection with another channel: a new channel
// is a new connection.
class RpcChannel {
 public:
  // A connection must be ready in this time, and a PING answered.
  static constexpr std::chrono::milliseconds kConnectTimeout{5000}, kPingTimeout{10000};
  // Of one message from the server; a larger one ends its stream with RESOURCE_EXHAUSTED.
  static constexpr size_t kMessageBytesMax = 32 * 1024 * 1024;

  explicit RpcChannel(const RpcTarget& target);
  ~RpcChannel();
  RpcChannel(const RpcChannel&) = delete;
  RpcChannel& operator=(const RpcChannel&) = delete;

  // The server answers: it has sent its SETTINGS. A host that is there with a process that hangs does not.
  bool connected() const;

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace sluice::discovery
