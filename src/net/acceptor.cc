#include "net/acceptor.h"

#include <sys/epoll.h>

#include <climits>
#include <cstring>
#include <optional>
#include <utility>

#include "base/log.h"
#include "runtime/fd_watch.h"
#include "runtime/timer_wheel.h"

namespace sluice::net {

// Shared, so that a callback may destroy the Acceptor. The Timer base is armed during a pause, and edges do nothing
// then.
struct Acceptor::Impl final : runtime::FdWatch, runtime::Timer, std::enable_shared_from_this<Impl> {
  Impl(runtime::Worker& w, ListenSocket s, OnAccept on_accept, Admit admit)
      : worker(w),
        socket(std::move(s)),
        loop(
            "listener " + socket->address().ToString(), DescriptorReserve::kShare,
            [this, on_accept = std::move(on_accept)](int fd, const SocketAddress& peer) {
              on_accept(fd, ToString(peer));
              return socket.has_value();
            },
            std::move(admit)) {
    if (const int error = worker.Watch(socket->fd(), EPOLLIN, *this)) {
      SLUICE_LOG_ERROR("listener {}: cannot watch the socket: {}", socket->address().ToString(), std::strerror(error));
      socket.reset();
    }
  }

  void OnEdge(uint32_t) override { Accept(); }
  void OnRequeued() override { Accept(); }
  void OnTimer(base::TimePoint) override { Accept(); }

  void Accept() {
    if (Timer::armed()) return;
    const auto self = shared_from_this();
    const AcceptLoop::Outcome outcome = loop.Run(socket->fd(), worker.now());
    if (!socket) return;
    if (outcome == AcceptLoop::Outcome::kMore) worker.RequeueNextTurn(*this);
    if (outcome == AcceptLoop::Outcome::kPause) worker.timers().Arm(*this, worker.now() + AcceptLoop::kPause);
  }

  void HandOver(std::function<void()> done) {
    left.done = std::move(done);
    if (!socket || socket->address().kind() != Address::Kind::kIp) return left.OnTimer(worker.now());
    socket->DropNewConnections();
    worker.timers().Arm(left, worker.now() + kHandshakeGrace);
  }
  void AcceptRest() {
    const auto self = shared_from_this();
    if (socket) loop.Run(socket->fd(), worker.now(), INT_MAX);
    Close();
  }

  void Close() {
    worker.timers().Disarm(*this);
    worker.timers().Disarm(left);
    if (socket) worker.Unwatch(socket->fd(), *this);
    socket.reset();
    if (auto done = std::exchange(left.done, nullptr)) done();
  }

  // Armed from HandOver until the socket is closed.
  struct Left final : runtime::Timer {
    explicit Left(Impl& i) : impl(i) {}
    void OnTimer(base::TimePoint) override { impl.AcceptRest(); }
    Impl& impl;
    std::function<void()> done;
  };

  runtime::Worker& worker;
  std::optional<ListenSocket> socket;  // empty once closed
  AcceptLoop loop;
  Left left{*this};
};

Acceptor::Acceptor(runtime::Worker& worker, ListenSocket socket, OnAccept on_accept, Admit admit)
    : impl_(std::make_shared<Impl>(worker, std::move(socket), std::move(on_accept), std::move(admit))) {}

Acceptor::~Acceptor() { impl_->Close(); }

void Acceptor::Apply(const ListenSocket::Options& options) {
  if (!impl_->socket) return;
  if (auto status = impl_->socket->Apply(options); !status) SLUICE_LOG_WARN("listener: {}", status.error().detail);
}

void Acceptor::SetShared(bool shared) {
  if (impl_->socket) impl_->socket->SetShared(shared);
}

void Acceptor::HandOver(std::function<void()> done) { impl_->HandOver(std::move(done)); }

}  // namespace sluice::net
