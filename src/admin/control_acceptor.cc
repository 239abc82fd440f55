#include "admin/control_acceptor.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "base/clock.h"
#include "net/accept_loop.h"

namespace sluice::admin {

namespace asio = boost::asio;

struct ControlAcceptor::Impl {
  Impl(asio::io_context& context, net::ListenSocket s, const std::string& name, int share, OnAccept on_accept)
      : socket(std::move(s)),
        readable(context, socket.fd()),
        pause(context),
        loop(name + " " + socket.address().ToString(), share,
             [on_accept = std::move(on_accept)](int fd, const net::SocketAddress&) {
               on_accept(fd);
               return true;
             }) {}
  ~Impl() { readable.release(); }

  void Wait() {
    readable.async_wait(asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
      if (!error) Accept();
    });
  }

  void Accept() {
    if (loop.Run(socket.fd(), base::Clock::Steady().Now()) != net::AcceptLoop::Outcome::kPause) return Wait();
    pause.expires_after(net::AcceptLoop::kPause);
    pause.async_wait([this](const boost::system::error_code& error) {
      if (!error) Accept();
    });
  }

  net::ListenSocket socket;
  asio::posix::stream_descriptor readable;  // of the socket, which stays the owner
  asio::steady_timer pause;
  net::AcceptLoop loop;
};

ControlAcceptor::ControlAcceptor(asio::io_context& context, net::ListenSocket socket, const std::string& name,
                                 int share, OnAccept on_accept)
    : impl_(std::make_unique<Impl>(context, std::move(socket), name, share, std::move(on_accept))) {
  impl_->Wait();
}

ControlAcceptor::~ControlAcceptor() = default;

const net::Address& ControlAcceptor::address() const { return impl_->socket.address(); }

}  // namespace sluice::admin
