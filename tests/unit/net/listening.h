// Listening sockets for tests, and clients that connect to them.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "net/listen_socket.h"
#include "net/socket_address.h"
#include "support/socket_worker.h"

namespace sluice::net {

inline Address Parse(const std::string& text) { return *Address::Parse(text); }
inline base::Result<ListenSocket> Listen(const std::string& text, ListenSocket::Options options = {}) {
  return ListenSocket::Open(Parse(text), options);
}
// A connected client socket, or -1 with errno.
inline int Connect(const Address& address, int flags = 0) {
  SocketAddress target = *ToSocketAddress(address);
  int fd = ::socket(target.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  if (::connect(fd, target.get(), target.length) == 0) return fd;
  int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

class UnixPath : public ::testing::Test {
 public:
  ~UnixPath() override { ::unlink(path.c_str()); }
  const std::string path = test::SocketPath("listening");
  const std::string address = "unix:" + path;
};

}  // namespace sluice::net
