#include "net/tls/sessions.h"

#include <openssl/ssl.h>

namespace sluice::net {

void TlsSessions::Put(std::string_view peer, OpenSslPtr<ssl_session_st> session) {
  OpenSslPtr<ssl_session_st> dropped;  // freed outside of the lock
  std::lock_guard lock(mutex_);
  auto it = peers_.find(peer);
  if (it == peers_.end()) {
    // A process that has seen so many endpoints may lose the sessions of one.
    if (peers_.size() >= kPeersMax) peers_.erase(peers_.begin());
    it = peers_.emplace(std::string(peer), std::deque<OpenSslPtr<ssl_session_st>>()).first;
  }
  if (it->second.size() >= kPerPeerMax) {
    dropped = std::move(it->second.front());
    it->second.pop_front();
  }
  it->second.push_back(std::move(session));
}

OpenSslPtr<ssl_session_st> TlsSessions::Take(std::string_view peer) {
  std::lock_guard lock(mutex_);
  auto it = peers_.find(peer);
  if (it == peers_.end()) return nullptr;
  while (!it->second.empty()) {
    OpenSslPtr<ssl_session_st> session = std::move(it->second.back());
    it->second.pop_back();
    if (SSL_SESSION_is_resumable(session.get()) != 1) continue;
    if (SSL_SESSION_get_protocol_version(session.get()) < TLS1_3_VERSION) {
      SSL_SESSION_up_ref(session.get());
      it->second.emplace_back(session.get());
    }
    return session;
  }
  peers_.erase(it);
  return nullptr;
}

size_t TlsSessions::size() const {
  std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const auto& [peer, sessions] : peers_) sum += sessions.size();
  return sum;
}

}  // namespace sluice::net
