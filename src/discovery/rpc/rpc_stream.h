// RpcStream: one RPC to a source's server, as a task of discovery sees it: serialized messages in both directions, and
// a bell. gRPC's threads read and write; the task is never blocked.
//
// A unary RPC is a stream on which one message goes each way.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "discovery/bell.h"
#include "discovery/rpc/rpc_channel.h"

namespace sluice::discovery {

// One worker only, that of its bell, which outlives it.
class RpcStream {
 public:
  // Messages that wait for Take, and their bytes; with so many no more are read, and the server has to wait.
  static constexpr size_t kInboxMax = 16, kInboxBytesMax = RpcChannel::kMessageBytesMax;

  struct Options {
    std::string method;                                         // "/etcdserverpb.Watch/Watch"
    std::vector<std::pair<std::string, std::string>> metadata;  // names in lower case
    std::chrono::milliseconds timeout{0};                       // of the whole RPC; 0: none
  };
  // How it ended, as its gRPC status says.
  struct End {
    int code = 0;
    std::string message;
    bool ok() const { return code == 0; }
    // "UNAVAILABLE: failed to connect to all addresses"
    std::string ToString() const;
  };

  // Begins the RPC. The bell rings when a message is there to be taken, and when it has ended.
  RpcStream(std::shared_ptr<RpcChannel> channel, const Options& options, Bell& bell);
  // Cancels what has not ended.
  ~RpcStream();
  RpcStream(const RpcStream&) = delete;
  RpcStream& operator=(const RpcStream&) = delete;

  // In order; after the end for nothing. Not more than the owner would have in memory anyway: there is no bound here.
  void Send(std::string message);
  // Nothing more will be sent.
  void SendEnd();
  // The next message, if one is there.
  std::optional<std::string> Take();
  // Set when it has ended and every message was taken.
  std::optional<End> end() const;

 private:
  class Reactor;
  const std::shared_ptr<Reactor> reactor_;
};

}  // namespace sluice::discovery
