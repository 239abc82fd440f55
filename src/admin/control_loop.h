// ControlLoop: a thread of the control side with an io_context, for timers and sockets that wait on it.
//
// The admin RPC and the HTTP port have one each: a request on the HTTP port may wait for a cluster that is being
// changed, and neither health reports nor connections of the admin RPC should wait with it.
#pragma once

#include <memory>
#include <thread>

namespace boost::asio {
class io_context;
}

namespace sluice::admin {

// Handlers run on its thread, one at a time. Start and Stop: by its owner.
class ControlLoop {
 public:
  ControlLoop();
  // Stop; handlers that still wait are destroyed unrun.
  ~ControlLoop();

  // Until Start the owner's, from then on its thread's.
  boost::asio::io_context& context() { return *context_; }
  void Start();
  // When it returns no handler runs, nor will: what the handlers used is the caller's again. Idempotent; not from a
  // handler.
  void Stop();

 private:
  std::unique_ptr<boost::asio::io_context> context_;
  std::thread thread_;
};

}  // namespace sluice::admin
