#include "admin/rpc_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "net/descriptor_reserve.h"

namespace sluice::admin {
namespace {

constexpr int kAcceptsInARow = 16;

base::Error Failed(const ListenAddress& address, const std::string& why) {
  return base::MakeError(base::ErrorKind::kIo, "cannot listen on " + address.ToString() + ": " + why);
}

std::pair<dev_t, ino_t> FileId(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_dev, info.st_ino};
}

}  // namespace

struct RpcListener::Impl {
  explicit Impl(ListenAddress where) : address(std::move(where)) {}
  ~Impl() {
    if (thread.joinable()) {
      ::eventfd_write(stop, 1);
      thread.join();
    }
    if (address.is_unix() && !listeners.empty() && FileId(address.path) == file) ::unlink(address.path.c_str());
    for (int fd : listeners) ::close(fd);
    for (int fd : {stop, all, quiet}) {
      if (fd >= 0) ::close(fd);
    }
  }

  // errno on failure, 0 if it listens.
  int Bind(const sockaddr* where, socklen_t length, int protocol) {
    const int fd = ::socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (fd < 0) return errno;
    const int on = 1;
    if (!address.is_unix()) {
      ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // those accepted inherit it
    }
    if (::bind(fd, where, length) != 0 || ::listen(fd, kBacklog) != 0) {
      const int error = errno;
      ::close(fd);
      return error;
    }
    listeners.push_back(fd);
    return 0;
  }

  base::Status OpenUnix() {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    std::memcpy(where.sun_path, address.path.data(), address.path.size());  // ParseListenAddress checked the length
    if (int error = Bind(reinterpret_cast<const sockaddr*>(&where), sizeof(where), 0))
      return Failed(address, std::strerror(error));
    file = FileId(address.path);
    return base::Ok();
  }

  base::Status OpenTcp() {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    if (int error = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &found))
      return Failed(address, ::gai_strerror(error));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
    std::vector<std::string> bound;
    int last = 0;
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
      std::string bytes(reinterpret_cast<const char*>(at->ai_addr), at->ai_addrlen);
      if (std::find(bound.begin(), bound.end(), bytes) != bound.end()) continue;  // the name is there twice
      bound.push_back(bytes);
      // The port is at the same place in both families.
      reinterpret_cast<sockaddr_in*>(bytes.data())->sin_port = htons(address.port);
      const int error = Bind(reinterpret_cast<const sockaddr*>(bytes.data()), at->ai_addrlen, at->ai_protocol);
      // A family that this host does not have is no reason not to start; a port that another process has is.
      if (error == EADDRINUSE || error == EACCES) return Failed(address, std::strerror(error));
      if (error != 0) last = error;
      if (error == 0 && address.port == 0) {
        sockaddr_storage chosen{};
        socklen_t length = sizeof(chosen);
        if (::getsockname(listeners.back(), reinterpret_cast<sockaddr*>(&chosen), &length) != 0) {
          return Failed(address, std::strerror(errno));
        }
        address.port = ntohs(reinterpret_cast<const sockaddr_in*>(&chosen)->sin_port);
      }
    }
    return listeners.empty() ? base::Status(Failed(address, std::strerror(last))) : base::Ok();
  }

  // Not poll(2): it fails where RLIMIT_NOFILE was lowered below the number of sockets.
  base::Status Watch() {
    if (stop < 0 || all < 0 || quiet < 0) return Failed(address, std::strerror(errno));
    for (int in : {all, quiet}) {
      epoll_event event{EPOLLIN, {.fd = stop}};
      if (::epoll_ctl(in, EPOLL_CTL_ADD, stop, &event) != 0) return Failed(address, std::strerror(errno));
    }
    for (int fd : listeners) {
      epoll_event event{EPOLLIN, {.fd = fd}};
      if (::epoll_ctl(all, EPOLL_CTL_ADD, fd, &event) != 0) return Failed(address, std::strerror(errno));
    }
    return base::Ok();
  }

  void Run() {
    for (bool pause = false;;) {
      epoll_event event{};
      const int count = ::epoll_wait(pause ? quiet : all, &event, 1, pause ? static_cast<int>(kPause.count()) : -1);
      if (count > 0 && event.data.fd == stop) return;
      pause = false;
      for (int fd : listeners) pause |= !Accept(fd);
    }
  }

  // False: no descriptor may be taken now.
  bool Accept(int listener) {
    for (int i = 0; i < kAcceptsInARow; ++i) {
      if (!reserve.MayTake()) return Say("the last file descriptors are kept for backends");
      const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd >= 0) {
        reserve.Took(fd);
        on_accept(listener, fd);
        continue;
      }
      const int error = errno;
      if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) {
        reserve.NoneLeft();
        return Say(std::strerror(error));
      }
      if (error != EINTR && error != ECONNABORTED) return true;  // EAGAIN, or the peer's trouble
    }
    return true;
  }

  bool Say(const char* why) {
    if (log.Allow(base::Clock::Steady().Now())) {
      SLUICE_LOG_WARN("admin {}: accepts nothing for now: {} (RLIMIT_NOFILE is {})", address.ToString(), why,
                      reserve.limit());
    }
    return false;
  }

  ListenAddress address;
  std::vector<int> listeners;
  std::pair<dev_t, ino_t> file;  // of a Unix socket
  const int stop = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // What is watched: everything, and in a pause nothing but `stop`.
  const int all = ::epoll_create1(EPOLL_CLOEXEC), quiet = ::epoll_create1(EPOLL_CLOEXEC);
  std::function<void(int, int)> on_accept;
  std::thread thread;
  // The thread's.
  net::DescriptorReserve reserve{net::DescriptorReserve::kOperatorsShare};
  base::LogLimit log{1, kSayAgain};
};

RpcListener::RpcListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RpcListener::~RpcListener() = default;
const ListenAddress& RpcListener::address() const { return impl_->address; }

base::Result<std::unique_ptr<RpcListener>> RpcListener::Open(ListenAddress address) {
  auto impl = std::make_unique<Impl>(std::move(address));
  if (auto opened = impl->address.is_unix() ? impl->OpenUnix() : impl->OpenTcp(); !opened) return opened.error();
  if (auto watched = impl->Watch(); !watched) return watched.error();
  return std::unique_ptr<RpcListener>(new RpcListener(std::move(impl)));
}

void RpcListener::Start(std::function<void(int listener, int fd)> on_accept) {
  impl_->on_accept = std::move(on_accept);
  impl_->thread = std::thread([impl = impl_.get()] { impl->Run(); });
}

}  // namespace sluice::admin
