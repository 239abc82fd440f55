#include "net/unix_socket_claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "net/socket_address.h"

namespace sluice::net {
namespace {

using base::ErrorKind;
using base::MakeError;

base::Error Failed(const std::string& what, int error) {
  return MakeError(ErrorKind::kIo, what + ": " + std::strerror(error));
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

// In a directory that all may write (/tmp) any process may hold the lock, so the wait for it is bounded.
base::Result<int> LockDirectory(const std::string& directory) {
  constexpr int kTries = 50;
  constexpr std::chrono::milliseconds kBetweenTries{20};
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Failed("cannot open the socket's directory " + directory, errno);
  for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; ++i) {
    const int error = errno;
    if ((error != EWOULDBLOCK && error != EINTR) || i == kTries) {
      close(fd);
      return Failed("cannot lock the socket's directory " + directory, error);
    }
    std::this_thread::sleep_for(kBetweenTries);  // a thread of the control side
  }
  return fd;
}

// Removes the socket of a dead process; ok if nothing is (any more) at the path.
base::Status RemoveStale(const Address& address) {
  const std::string& path = address.host();
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? base::Ok() : base::Status(Failed("cannot look at " + path, errno));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return MakeError(ErrorKind::kInvalidArgument,
                     path + " exists and is not a socket; remove it or choose another path");
  }
  const base::Result<SocketAddress> target = ToSocketAddress(address);
  if (!target.ok()) return target.error();
  // Not blocking: a living listener whose queue is full would block us here.
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("cannot make a socket", errno);
  const int result = connect(fd, target->get(), target->length);
  const int error = result == 0 ? 0 : errno;
  close(fd);
  if (error == 0 || error == EAGAIN) {  // EAGAIN: its backlog is full, so there is a listener
    return MakeError(ErrorKind::kConflict, "another process listens on " + path + "; stop it or choose another path");
  }
  // Only a refusal says that no process listens; anything else (permission, for one) says nothing about it.
  if (error != ECONNREFUSED) return Failed("cannot tell whether " + path + " is in use", error);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return Failed("cannot remove the stale socket " + path, errno);
  return base::Ok();
}

}  // namespace

base::Result<UnixSocketClaim> UnixSocketClaim::Claim(const Address& address) {
  base::Result<int> directory = LockDirectory(DirectoryOf(address.host()));
  if (!directory.ok()) return directory.error();
  if (base::Status stale = RemoveStale(address); !stale.ok()) {
    close(*directory);
    return stale.error();
  }
  return UnixSocketClaim(*directory);
}

UnixSocketClaim::~UnixSocketClaim() {
  if (directory_ >= 0) close(directory_);  // unlocks
}

}  // namespace sluice::net
