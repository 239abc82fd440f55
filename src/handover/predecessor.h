// Predecessor: the process of the daemon that has started this one to be replaced by it: what it hands over, in the
// order in which a start needs it.
//
//   Meet (before the configuration is read) -> Begin's sockets and lists -> Ready -> Take's state -> Serving
//
// docs/handover.md has the whole. From Serving on the process leaves: its channel is then one of Processes.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "handover/channel.h"

namespace sluice::handover {

// Not thread-safe.
class Predecessor {
 public:
  // Between two messages of the predecessor. It has bounds of its own, and ends this process where they are met.
  static constexpr std::chrono::seconds kWaitMax{60};

  // By Successor::kVariable, which it takes out of the environment: before there are threads. Null: this process was
  // not started by another one. kInvalidArgument: the variable names no such socket; kIo: the other process has gone.
  static base::Result<std::unique_ptr<Predecessor>> FromEnvironment(std::string_view version);
  // Over `channel`. `format`: of this process.
  static base::Result<std::unique_ptr<Predecessor>> Meet(Channel channel, std::string_view version, uint32_t format);

  const v1::Begin& begin() const { return begin_; }
  // A socket of the owner, by its place in begin().sockets(); once each.
  Descriptor TakeSocket(int place) { return std::move(sockets_[static_cast<size_t>(place)]); }
  // The records that came with Begin and with Take.
  const Descriptor& lists() const { return lists_; }
  const Descriptor& state() const { return state_; }
  // What each process of take() has of the limits: a record each.
  const Descriptor& held() const { return held_; }

  // Everything is built: returns when Take has come. kIo: the other process has gone, or has given up, and so must this
  // one. kInvalidArgument.
  base::Status Ready();
  // Of Take, with the sockets of all but the last, which is the predecessor itself.
  const v1::Take& take() const { return take_; }
  std::vector<Channel> TakeChannels();
  // This process is about to accept calls, which cannot fail: the predecessor leaves, and the files are closed. Its
  // channel, over which it says what it gives up from now on. It may be gone, which changes nothing any more.
  Channel Serving();
  // This process gives up.
  void Fail(const std::string& why) { channel_.Fail(why); }

 private:
  explicit Predecessor(Channel channel) : channel_(std::move(channel)) {}
  // The next message, which must be of `kind`.
  base::Result<Channel::Received> Expect(v1::Message::KindCase kind);

  Channel channel_;
  v1::Begin begin_;
  v1::Take take_;
  Descriptor lists_, state_, held_;
  std::vector<Descriptor> sockets_, processes_;
};

}  // namespace sluice::handover
