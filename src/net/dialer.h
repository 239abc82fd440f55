// Dialer: one attempt to connect to an Address, with a deadline. DNS names are resolved on a helper thread.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "net/address.h"
#include "net/stream.h"
#include "runtime/worker.h"

namespace sluice::net {

// An attempt to connect that is under way; destroying it cancels it.
class Attempt {
 public:
  virtual ~Attempt() = default;
};

class Dialer final : public Attempt {
 public:
  // Called once, on the worker, not from inside the constructor: a connected stream, or kConnectFailed / kConnectTimeout.
  using OnDone = std::function<void(base::Result<std::unique_ptr<Stream>>)>;

  // Starts at once. Make and destroy on `worker`; destroying it cancels the attempt and `on_done` is not called.
  Dialer(runtime::Worker& worker, const Address& address, base::TimePoint deadline, OnDone on_done);
  ~Dialer() override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// How connections are made: as Dialer does, which is the default, or in memory for tests.
using DialFunction =
    std::function<std::unique_ptr<Attempt>(runtime::Worker&, const Address&, base::TimePoint deadline, Dialer::OnDone)>;
std::unique_ptr<Attempt> Dial(runtime::Worker& worker, const Address& address, base::TimePoint deadline, Dialer::OnDone on_done);

}  // namespace sluice::net
