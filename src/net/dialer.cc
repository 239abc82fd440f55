#include "net/dialer.h"

#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "net/socket_address.h"
#include "net/socket_stream.h"
#include "runtime/runtime.h"
#include "runtime/timer_wheel.h"

namespace sluice::net {

using base::ErrorKind;
using base::MakeError;

// Shared with pending waits and helper threads' answers, which may come after the Dialer is gone.
struct Dialer::Impl final : public runtime::Timer, public std::enable_shared_from_this<Impl> {
  Impl(runtime::Worker& w, const Address& a, OnDone callback) : worker(w), address(a), on_done(std::move(callback)) {}

  void Start(base::TimePoint deadline) {
    worker.timers().Arm(*this, deadline);
    if (address.kind() != Address::Kind::kName) {
      auto target = ToSocketAddress(address);
      if (target) targets.push_back(*target);
      else error = target.error();
      // Not from inside the constructor: the caller does not hold the Dialer yet.
      worker.Post([self = shared_from_this()] { self->TryNext(); });
      return;
    }
    auto found = std::make_shared<std::optional<base::Result<std::vector<SocketAddress>>>>();
    bool queued = worker.runtime().Block(
        worker, [found, a = address] { found->emplace(ResolveBlocking(a)); },
        [found, self = shared_from_this()] {
          if ((*found)->ok()) self->targets = ***found;
          else self->error = (*found)->error();
          self->TryNext();
        });
    if (queued) return;
    error = MakeError(ErrorKind::kConnectFailed, "cannot resolve " + address.host() + ": too many names wait");
    worker.Post([self = shared_from_this()] { self->TryNext(); });
  }

  // Tries the addresses in turn until one connects; the last failure is reported.
  void TryNext() {
    while (!done && next < targets.size()) {
      const SocketAddress& target = targets[next++];
      int fd = ::socket(target.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      if (fd < 0) {
        error = MakeError(ErrorKind::kConnectFailed, std::string("socket: ") + std::strerror(errno));
        continue;
      }
      int rc = ::connect(fd, target.get(), target.length);
      if (rc == 0) return Connected(fd);
      // EAGAIN on a Unix socket: its queue is full, which is a refusal; on TCP connect is under way (EINPROGRESS).
      if (errno != EINPROGRESS) {
        error = MakeError(ErrorKind::kConnectFailed, "connect to " + ToString(target) + ": " + std::strerror(errno));
        ::close(fd);
        continue;
      }
      boost::system::error_code failed;
      descriptor.emplace(worker.io());
      if (descriptor->assign(fd, failed); failed) {
        error = MakeError(ErrorKind::kConnectFailed, "cannot watch a socket: " + failed.message());
        descriptor.reset();
        ::close(fd);
        continue;
      }
      descriptor->async_wait(boost::asio::posix::stream_descriptor::wait_write,
                             [self = shared_from_this()](const boost::system::error_code& ec) {
                               if (!self->done && ec != boost::asio::error::operation_aborted) self->Finished();
                             });
      return;
    }
    if (!done) Done(error);
  }

  void Finished() {
    int problem = 0;
    socklen_t length = sizeof(problem);
    ::getsockopt(descriptor->native_handle(), SOL_SOCKET, SO_ERROR, &problem, &length);
    if (problem == 0) return Connected(descriptor->release());
    error = MakeError(ErrorKind::kConnectFailed, "connect to " + ToString(targets[next - 1]) + ": " + std::strerror(problem));
    descriptor.reset();
    TryNext();
  }

  void Connected(int fd) {
    descriptor.reset();
    auto stream = MakeSocketStream(worker, fd, address.ToString());
    if (stream == nullptr) return Done(MakeError(ErrorKind::kConnectFailed, "cannot watch a socket"));
    Done(std::move(stream));
  }

  void OnTimer(base::TimePoint) override {
    descriptor.reset();
    Done(MakeError(ErrorKind::kConnectTimeout, "no connection to " + address.ToString() + " in time"));
  }

  void Done(base::Result<std::unique_ptr<Stream>> result) {
    done = true;
    worker.timers().Disarm(*this);
    auto callback = std::move(on_done);  // it may destroy the Dialer
    callback(std::move(result));
  }

  void Cancel() {
    done = true;
    worker.timers().Disarm(*this);
    descriptor.reset();
  }

  runtime::Worker& worker;
  Address address;
  OnDone on_done;
  std::vector<SocketAddress> targets;
  size_t next = 0;
  std::optional<boost::asio::posix::stream_descriptor> descriptor;
  base::Error error = MakeError(ErrorKind::kConnectFailed, "no address to connect to");
  bool done = false;
};

Dialer::Dialer(runtime::Worker& worker, const Address& address, base::TimePoint deadline, OnDone on_done)
    : impl_(std::make_shared<Impl>(worker, address, std::move(on_done))) {
  impl_->Start(deadline);
}

Dialer::~Dialer() { impl_->Cancel(); }

std::unique_ptr<Attempt> Dial(runtime::Worker& worker, const Address& address, base::TimePoint deadline, Dialer::OnDone on_done) {
  return std::make_unique<Dialer>(worker, address, deadline, std::move(on_done));
}

}  // namespace sluice::net
