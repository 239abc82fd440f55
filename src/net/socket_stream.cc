#include "net/socket_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "runtime/fd_watch.h"
#include "runtime/raw_syscalls.h"

namespace sluice::net {
namespace {

// Readiness is remembered between edges (epoll(7), "edge-triggered"):
//   readable_:  set by an edge; cleared by a read that took less than there was room for, or nothing. Bytes that arrive
//               after that read are a new edge. A full read leaves it set: there may be more, and no edge will say so.
//   until_end_: the edge said that the end is there or near (RDHUP, HUP, ERR: data and FIN may share one edge) or that
//               the stream has a mark in it at which reads stop short (PRI): then only "would block" clears readable_.
//   writable_:  cleared by a write that the socket did not take whole, set by an edge.
//
// EPOLLOUT is watched from the first full socket on, and until an edge of it finds no waiting writer: on a Unix socket
// each read of the peer is such an edge.
class SocketStream final : public Stream, private runtime::FdWatch {
 public:
  SocketStream(runtime::Worker& worker, int fd, std::string peer_name)
      : worker_(worker), fd_(fd), peer_name_(std::move(peer_name)) {}
  ~SocketStream() override {
    if (gone_ != nullptr) *gone_ = true;
    Close();
  }

  // False, and the socket closed, if the reactor cannot watch it.
  bool Start() {
    if (worker_.Watch(fd_, kReadEvents, *this) == 0) return true;
    ::close(fd_);
    fd_ = -1;
    return false;
  }

  IoResult Read(uint8_t* into, size_t capacity) override {
    if (fd_ < 0) return {IoResult::Kind::kEof, 0, 0};
    for (;;) {
      ssize_t n = runtime::Recv(fd_, into, capacity);
      if (n > 0) {
        if (static_cast<size_t>(n) < capacity && !until_end_) readable_ = false;
        return {IoResult::Kind::kOk, static_cast<size_t>(n), 0};
      }
      if (n == 0) return {IoResult::Kind::kEof, 0, 0};
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return {IoResult::Kind::kError, 0, errno};
      readable_ = false;
      return {IoResult::Kind::kWouldBlock, 0, 0};
    }
  }

  IoResult Write(const iovec* parts, size_t count) override {
    if (fd_ < 0) return {IoResult::Kind::kError, 0, EPIPE};
    size_t offered = 0;
    for (size_t i = 0; i < count; ++i) offered += parts[i].iov_len;
    for (;;) {
      ssize_t n = Send(parts, count);
      if (n >= 0) {
        if (static_cast<size_t>(n) < offered) writable_ = false;
        return {IoResult::Kind::kOk, static_cast<size_t>(n), 0};
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) return {IoResult::Kind::kError, 0, errno};
      writable_ = false;
      return {IoResult::Kind::kWouldBlock, 0, 0};
    }
  }

  void WaitReadable(IoEvents& events) override {
    if (fd_ < 0) return;
    SLUICE_DCHECK(reader_ == nullptr);
    reader_ = &events;
    if (readable_) worker_.RequeueNextTurn(*this);
  }

  void WaitWritable(IoEvents& events) override {
    if (fd_ < 0) return;
    SLUICE_DCHECK(writer_ == nullptr);
    writer_ = &events;
    if (writable_) {
      worker_.RequeueNextTurn(*this);
    } else if (!std::exchange(watches_write_, true)) {
      worker_.Rewatch(fd_, kReadEvents | EPOLLOUT, *this);
    }
  }

  void ShutdownWrite() override {
    if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
  }

  void Close() override {
    if (fd_ < 0) return;
    reader_ = writer_ = nullptr;
    worker_.Unwatch(fd_, *this);
    ::close(fd_);
    fd_ = -1;
  }

  std::string PeerName() const override { return peer_name_; }

 private:
  static constexpr uint32_t kEndEvents = EPOLLRDHUP | EPOLLPRI;  // HUP and ERR are always told
  static constexpr uint32_t kReadEvents = EPOLLIN | kEndEvents;

  ssize_t Send(const iovec* parts, size_t count) {
    if (count == 1) return runtime::Send(fd_, parts->iov_base, parts->iov_len, MSG_NOSIGNAL);
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = count;
    return runtime::SendMsg(fd_, message, MSG_NOSIGNAL);
  }

  void OnEdge(uint32_t events) override {
    constexpr uint32_t kEnd = kEndEvents | EPOLLHUP | EPOLLERR;
    if ((events & kEnd) != 0) until_end_ = true;
    if ((events & (kEnd | EPOLLIN)) != 0) readable_ = true;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) writable_ = true;
    if (events == EPOLLOUT && writer_ == nullptr) {
      watches_write_ = false;
      worker_.Rewatch(fd_, kReadEvents, *this);
    }
    Tell();
  }
  void OnRequeued() override { Tell(); }

  // An error that the edge announced shows in the read or write that follows.
  void Tell() {
    if (readable_ && reader_ != nullptr) {
      bool gone = false;
      gone_ = &gone;
      std::exchange(reader_, nullptr)->OnReadable();
      if (gone) return;
      gone_ = nullptr;
    }
    if (writable_ && writer_ != nullptr) std::exchange(writer_, nullptr)->OnWritable();
  }

  runtime::Worker& worker_;
  IoEvents* reader_ = nullptr;
  IoEvents* writer_ = nullptr;
  bool* gone_ = nullptr;  // set while OnReadable runs: it may destroy us
  int fd_;                // -1 once closed
  bool readable_ = false, until_end_ = false, writable_ = true, watches_write_ = false;
  std::string peer_name_;
};

}  // namespace

std::unique_ptr<Stream> MakeSocketStream(runtime::Worker& worker, int fd, std::string peer_name) {
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails harmlessly on a Unix socket
  auto stream = std::make_unique<SocketStream>(worker, fd, std::move(peer_name));
  if (!stream->Start()) return nullptr;
  return stream;
}

}  // namespace sluice::net
