#include "hostile/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::hostile {
namespace {

constexpr size_t kOutMax = 64 << 20;  // a peer that takes nothing: the rest is dropped

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Wire::Wire(Loop& loop, OnBytes on_bytes, OnEnd on_end)
    : loop_(loop), on_bytes_(std::move(on_bytes)), on_end_(std::move(on_end)) {}

Wire::~Wire() {
  Close();
  if (gone_ != nullptr) *gone_ = true;
}

bool Wire::Connect(uint16_t port, SSL_CTX* tls) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  // On loopback the kernel answers at once: its queue takes the connection, or it is refused.
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(fd);
    return false;
  }
  if (tls != nullptr) {
    ssl_ = SSL_new(tls);
    SSL_set_fd(ssl_, fd);
    SSL_set_connect_state(ssl_);
  }
  Take(fd);
  return true;
}

void Wire::Take(int fd) {
  fd_ = fd;
  ::fcntl(fd, F_SETFL, O_NONBLOCK);
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  loop_.Watch(fd, EPOLLIN, [this](uint32_t events) { Handle(events); });
  if (ssl_ != nullptr) {
    SSL_do_handshake(ssl_);
    Arm();
  }
}

bool Wire::Handshaken() { return ssl_ == nullptr || SSL_is_init_finished(ssl_) == 1; }

void Wire::Send(std::string_view bytes) {
  if (fd_ < 0 || waiting() + bytes.size() > kOutMax) return;
  if (sent_ == out_.size()) {
    out_.clear();
    sent_ = 0;
  }
  out_.append(bytes);
  Flush();
  Arm();
}

void Wire::SendRaw(std::string_view bytes) {
  if (fd_ >= 0 && ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
}

void Wire::UpdateKeys() {
  if (fd_ < 0 || ssl_ == nullptr || !Handshaken()) return;
  SSL_key_update(ssl_, SSL_KEY_UPDATE_REQUESTED);
  SSL_do_handshake(ssl_);
}

void Wire::Close() {
  if (fd_ < 0) return;
  loop_.Forget(fd_);
  if (ssl_ != nullptr) SSL_free(ssl_);
  ssl_ = nullptr;
  ::close(fd_);
  fd_ = -1;
  out_.clear();
  sent_ = 0;
}

void Wire::Abort() {
  if (fd_ < 0) return;
  const linger now{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  Close();
}

void Wire::HalfClose() {
  if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
}

void Wire::Read(bool on) {
  reading_ = on;
  Arm();
}

void Wire::Arm() {
  if (fd_ < 0) return;
  const bool write = wants_write_ || (waiting() > 0 && Handshaken());
  loop_.Change(fd_, (reading_ ? EPOLLIN : 0u) | (write ? EPOLLOUT : 0u));
}

void Wire::Handle(uint32_t events) {
  const auto gone = std::make_unique<bool>(false);  // not a local: g++ 12 takes it for one that stays behind
  bool* const before = std::exchange(gone_, gone.get());
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !Fill()) return;
  if (*gone) {
    if (before != nullptr) *before = true;
    return;
  }
  gone_ = before;
  if (fd_ < 0) return;
  Flush();
  Arm();
}

// False: the wire may not be there any more.
bool Wire::Fill() {
  static char buffer[1 << 16];
  bool* const gone = gone_;
  for (int round = 0; round < 16; ++round) {  // then the others have a turn
    ssize_t n = 0;
    if (ssl_ == nullptr) {
      n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
      if (n <= 0) {
        Ended(n == 0 ? "end of stream" : std::strerror(errno));
        return false;
      }
    } else {
      ERR_clear_error();  // another connection's would be taken for this one's
      n = SSL_read(ssl_, buffer, sizeof buffer);
      if (n <= 0) {
        const int why = SSL_get_error(ssl_, static_cast<int>(n));
        wants_write_ = why == SSL_ERROR_WANT_WRITE;
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return true;
        Ended(why == SSL_ERROR_ZERO_RETURN ? "end of TLS" : "TLS error " + std::to_string(why));
        return false;
      }
    }
    on_bytes_(std::string_view(buffer, static_cast<size_t>(n)));
    if (*gone || fd_ < 0) return !*gone;
  }
  return true;
}

void Wire::Flush() {
  if (fd_ < 0 || !Handshaken()) return;
  while (waiting() > 0) {
    ssize_t n = 0;
    if (ssl_ == nullptr) {
      n = ::send(fd_, out_.data() + sent_, waiting(), MSG_NOSIGNAL);
    } else {
      ERR_clear_error();
      n = SSL_write(ssl_, out_.data() + sent_, static_cast<int>(std::min<size_t>(waiting(), 1 << 14)));
    }
    if (n <= 0) return;  // an end is seen where it is read
    sent_ += static_cast<size_t>(n);
  }
}

void Wire::Ended(const std::string& why) {
  const OnEnd on_end = on_end_;
  // Handle returns without touching the wire, which on_end may destroy.
  if (gone_ != nullptr) gone_ = nullptr;
  Close();
  on_end(why);
}

Listener::Listener(Loop& loop, std::function<void(int fd)> accepted) : loop_(loop) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = Loopback(0);
  ::bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address);
  ::listen(fd_, 1024);
  socklen_t size = sizeof address;
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  loop_.Watch(fd_, EPOLLIN, [this, accepted = std::move(accepted)](uint32_t) {
    for (int fd; (fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) accepted(fd);
  });
}

Listener::~Listener() {
  loop_.Forget(fd_);
  ::close(fd_);
}

uint16_t FreePort() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(fd);
  return ntohs(address.sin_port);
}

}  // namespace sluice::hostile
