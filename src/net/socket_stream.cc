#include "net/socket_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstddef>
#include <new>

#include "base/check.h"

namespace sluice::net {
namespace {

// What a pending wait needs after the stream may be gone: the descriptor, who listens, and storage for Asio's operation.
// Counted by hand: the stream holds one reference and each pending wait one. One worker only, so the count is plain.
struct Shared {
  explicit Shared(boost::asio::io_context& io) : descriptor(io) {}

  boost::asio::posix::stream_descriptor descriptor;
  IoEvents* reader = nullptr;  // null: nobody waits, or the stream was closed
  IoEvents* writer = nullptr;
  int refs = 1;
  // Asio allocates one operation a wait; these two slots serve it without the heap.
  static constexpr size_t kSlotBytes = 256;
  struct Slot {
    alignas(std::max_align_t) std::byte bytes[kSlotBytes];
    bool used = false;
  };
  Slot read_slot, write_slot;

  void Unref() {
    if (--refs == 0) delete this;
  }
};

// Asio's allocator for one wait: the slot if it is free and large enough, else the heap.
template <typename T>
struct SlotAllocator {
  using value_type = T;
  Shared::Slot* slot;

  explicit SlotAllocator(Shared::Slot* s) : slot(s) {}
  template <typename U>
  SlotAllocator(const SlotAllocator<U>& other) : slot(other.slot) {}
  T* allocate(size_t n) {
    if (!slot->used && n * sizeof(T) <= Shared::kSlotBytes) {
      slot->used = true;
      return reinterpret_cast<T*>(slot->bytes);
    }
    return static_cast<T*>(::operator new(n * sizeof(T)));
  }
  void deallocate(T* p, size_t) {
    if (reinterpret_cast<std::byte*>(p) == slot->bytes) {
      slot->used = false;
    } else {
      ::operator delete(p);
    }
  }
  template <typename U>
  bool operator==(const SlotAllocator<U>& other) const {
    return slot == other.slot;
  }
};

// The completion of one wait. Holds its reference until Asio has freed the operation that lies in Shared: it is moved
// out of the operation before it is called.
template <bool kRead>
struct WaitHandler {
  using allocator_type = SlotAllocator<std::byte>;
  Shared* shared;

  explicit WaitHandler(Shared* s) : shared(s) { ++shared->refs; }
  WaitHandler(WaitHandler&& other) noexcept : shared(std::exchange(other.shared, nullptr)) {}
  WaitHandler(const WaitHandler&) = delete;
  ~WaitHandler() {
    if (shared != nullptr) shared->Unref();
  }
  allocator_type get_allocator() const noexcept { return allocator_type(kRead ? &shared->read_slot : &shared->write_slot); }

  void operator()(const boost::system::error_code& error) {
    IoEvents*& listener = kRead ? shared->reader : shared->writer;
    IoEvents* events = std::exchange(listener, nullptr);
    if (events == nullptr || error == boost::asio::error::operation_aborted) return;
    // An error of the wait itself shows again in the read or write that follows.
    if (kRead) {
      events->OnReadable();
    } else {
      events->OnWritable();
    }
  }
};

class SocketStream final : public Stream {
 public:
  SocketStream(runtime::Worker& worker, int fd, std::string peer_name, boost::system::error_code& error)
      : fd_(fd), shared_(new Shared(worker.io())), peer_name_(std::move(peer_name)) {
    if (shared_->descriptor.assign(fd, error); !error) return;
    ::close(fd);
    fd_ = -1;
  }
  ~SocketStream() override {
    Close();
    shared_->Unref();
  }

  IoResult Read(uint8_t* into, size_t capacity) override {
    if (fd_ < 0) return {IoResult::Kind::kEof, 0, 0};
    for (;;) {
      ssize_t n = ::recv(fd_, into, capacity, 0);
      if (n > 0) return {IoResult::Kind::kOk, static_cast<size_t>(n), 0};
      if (n == 0) return {IoResult::Kind::kEof, 0, 0};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoResult::Kind::kWouldBlock, 0, 0};
      return {IoResult::Kind::kError, 0, errno};
    }
  }

  IoResult Write(const iovec* parts, size_t count) override {
    if (fd_ < 0) return {IoResult::Kind::kError, 0, EPIPE};
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = count;
    for (;;) {
      ssize_t n = ::sendmsg(fd_, &message, MSG_NOSIGNAL);
      if (n >= 0) return {IoResult::Kind::kOk, static_cast<size_t>(n), 0};
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return {IoResult::Kind::kWouldBlock, 0, 0};
      return {IoResult::Kind::kError, 0, errno};
    }
  }

  void WaitReadable(IoEvents& events) override {
    if (fd_ < 0) return;
    SLUICE_DCHECK(shared_->reader == nullptr);
    shared_->reader = &events;
    shared_->descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read, WaitHandler<true>(shared_));
  }

  void WaitWritable(IoEvents& events) override {
    if (fd_ < 0) return;
    SLUICE_DCHECK(shared_->writer == nullptr);
    shared_->writer = &events;
    shared_->descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_write, WaitHandler<false>(shared_));
  }

  void ShutdownWrite() override {
    if (fd_ >= 0) ::shutdown(fd_, SHUT_WR);
  }

  void Close() override {
    if (fd_ < 0) return;
    shared_->reader = nullptr;
    shared_->writer = nullptr;
    boost::system::error_code ignored;
    shared_->descriptor.close(ignored);
    fd_ = -1;
  }

  std::string PeerName() const override { return peer_name_; }

 private:
  int fd_;  // owned by shared_->descriptor; -1 once closed
  Shared* shared_;
  std::string peer_name_;
};

}  // namespace

std::unique_ptr<Stream> MakeSocketStream(runtime::Worker& worker, int fd, std::string peer_name) {
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // fails harmlessly on a Unix socket
  boost::system::error_code error;
  auto stream = std::make_unique<SocketStream>(worker, fd, std::move(peer_name), error);
  if (error) return nullptr;
  return stream;
}

}  // namespace sluice::net
