#include "admin/local_peers.h"

#include <sys/socket.h>

#include <charconv>

namespace sluice::admin {

void LocalPeers::Remember(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  std::lock_guard lock(mutex_);
  if (known) {
    processes_[fd] = {credentials.uid, credentials.pid};
  } else {
    processes_.erase(fd);
  }
}

std::string LocalPeers::NameOf(std::string_view peer) const {
  constexpr std::string_view kDescriptor = "fd:";
  if (!peer.starts_with(kDescriptor)) return std::string(peer);
  const std::string_view number = peer.substr(kDescriptor.size());
  const char* const end = number.data() + number.size();
  int fd = -1;
  const auto read = std::from_chars(number.data(), end, fd);
  if (read.ec != std::errc() || read.ptr != end) return std::string(peer);
  std::lock_guard lock(mutex_);
  const auto found = processes_.find(fd);
  if (found == processes_.end()) return std::string(peer);
  return "unix: uid=" + std::to_string(found->second.uid) + " pid=" + std::to_string(found->second.pid);
}

}  // namespace sluice::admin
