#include "net/dialer.h"

#include <unistd.h>

#include <algorithm>
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

namespace {

// RFC 8305 4: the families in turn, beginning with that of the first, else in the order of the resolver (RFC 6724).
std::vector<SocketAddress> InTurn(std::vector<SocketAddress> found) {
  if (found.size() > Dialer::kAddressesMax) found.resize(Dialer::kAddressesMax);
  if (found.size() < 3) return found;
  const auto other = std::stable_partition(
      found.begin(), found.end(),
      [family = found[0].storage.ss_family](const auto& address) { return address.storage.ss_family == family; });
  std::vector<SocketAddress> out;
  for (auto one = found.begin(), two = other; out.size() < found.size();) {
    if (one != other) out.push_back(*one++);
    if (two != found.end()) out.push_back(*two++);
  }
  return out;
}

}  // namespace

// Shared with pending waits and helper threads' answers, which may come after the Dialer is gone.
struct Dialer::Impl final : public runtime::Timer, public std::enable_shared_from_this<Impl> {
  // A socket that connects.
  struct Try {
    Try(runtime::Worker& worker, const SocketAddress& to) : target(to), descriptor(worker.io()) {}
    const SocketAddress target;
    boost::asio::posix::stream_descriptor descriptor;
  };

  Impl(runtime::Worker& w, const Address& a, base::TimePoint until, OnDone callback)
      : worker(w), address(a), deadline(until), on_done(std::move(callback)) {}

  void Start(Resolve resolve) {
    worker.timers().Arm(*this, deadline);
    if (address.kind() != Address::Kind::kName) {
      auto target = ToSocketAddress(address);
      if (target)
        targets.push_back(*target);
      else
        error = target.error();
      // Not from inside the constructor: the caller does not hold the Dialer yet.
      worker.Post([self = shared_from_this()] { self->TryNext(); });
      return;
    }
    if (!resolve) resolve = &ResolveBlocking;
    auto found = std::make_shared<std::optional<base::Result<std::vector<SocketAddress>>>>();
    bool queued = worker.runtime().Block(
        worker, [found, resolve = std::move(resolve), a = address] { found->emplace(resolve(a)); },
        [found, self = shared_from_this()] {
          if ((*found)->ok())
            self->targets = InTurn(std::move(***found));
          else
            self->error = (*found)->error();
          self->TryNext();
        });
    if (queued) return;
    error = MakeError(ErrorKind::kConnectFailed, "cannot resolve " + address.host() + ": too many names wait");
    worker.Post([self = shared_from_this()] { self->TryNext(); });
  }

  // The next address that does not fail at once. The last failure is reported when none is left.
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
        Failed(target, errno);
        ::close(fd);
        continue;
      }
      if (Watch(fd, target)) return WaitForNext();
      ::close(fd);
    }
    if (!done && tries.empty())
      Done(error);
    else if (!done)
      worker.timers().Arm(*this, deadline);
  }

  bool Watch(int fd, const SocketAddress& target) {
    auto one = std::make_shared<Try>(worker, target);
    boost::system::error_code failed;
    if (one->descriptor.assign(fd, failed); failed) {
      error = MakeError(ErrorKind::kConnectFailed, "cannot watch a socket: " + failed.message());
      return false;
    }
    if (tries.size() == kConnectingMax) {
      GiveUp(*tries.front());
      tries.erase(tries.begin());
    }
    tries.push_back(one);
    one->descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                               [self = shared_from_this(), one](const boost::system::error_code& ec) {
                                 if (!self->done && ec != boost::asio::error::operation_aborted) self->Finished(one);
                               });
    return true;
  }

  // What is left of the time is shared out among this address and those still to come.
  void WaitForNext() {
    if (next == targets.size()) return worker.timers().Arm(*this, deadline);
    const base::Nanos share = (deadline - worker.now()) / static_cast<int64_t>(targets.size() - next + 1);
    worker.timers().Arm(*this, worker.now() + std::min<base::Nanos>(share, kNextAddressAfter));
  }

  void Finished(const std::shared_ptr<Try>& one) {
    auto it = std::find(tries.begin(), tries.end(), one);
    if (it == tries.end()) return;  // given up
    tries.erase(it);
    int problem = 0;
    socklen_t length = sizeof(problem);
    ::getsockopt(one->descriptor.native_handle(), SOL_SOCKET, SO_ERROR, &problem, &length);
    if (problem == 0) return Connected(one->descriptor.release());
    Failed(one->target, problem);
    TryNext();
  }

  void Failed(const SocketAddress& target, int problem) {
    error = MakeError(ErrorKind::kConnectFailed, "connect to " + ToString(target) + ": " + std::strerror(problem));
  }

  void Connected(int fd) {
    auto stream = MakeSocketStream(worker, fd, address.ToString());
    if (stream == nullptr) return Done(MakeError(ErrorKind::kConnectFailed, "cannot watch a socket"));
    Done(std::move(stream));
  }

  void OnTimer(base::TimePoint now) override {
    if (now < deadline) return TryNext();
    Done(MakeError(ErrorKind::kConnectTimeout, "no connection to " + address.ToString() + " in time"));
  }

  void Done(base::Result<std::unique_ptr<Stream>> result) {
    auto self = shared_from_this();
    Cancel();
    auto callback = std::move(on_done);  // it may destroy the Dialer
    callback(std::move(result));
  }

  void Cancel() {
    done = true;
    worker.timers().Disarm(*this);
    for (const auto& one : tries) GiveUp(*one);
    tries.clear();
  }
  // Its wait, which holds it, ends with that.
  static void GiveUp(Try& one) {
    boost::system::error_code ignored;
    one.descriptor.close(ignored);
  }

  runtime::Worker& worker;
  const Address address;
  const base::TimePoint deadline;
  OnDone on_done;
  std::vector<SocketAddress> targets;
  size_t next = 0;
  std::vector<std::shared_ptr<Try>> tries;  // the oldest first
  base::Error error = MakeError(ErrorKind::kConnectFailed, "no address to connect to");
  bool done = false;
};

Dialer::Dialer(runtime::Worker& worker, const Address& address, base::TimePoint deadline, OnDone on_done,
               Resolve resolve)
    : impl_(std::make_shared<Impl>(worker, address, deadline, std::move(on_done))) {
  impl_->Start(std::move(resolve));
}

Dialer::~Dialer() { impl_->Cancel(); }

std::unique_ptr<Attempt> Dial(runtime::Worker& worker, const Address& address, base::TimePoint deadline,
                              Dialer::OnDone on_done) {
  return std::make_unique<Dialer>(worker, address, deadline, std::move(on_done));
}

}  // namespace sluice::net
