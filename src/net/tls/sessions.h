// TlsSessions: sessions of a client that may be resumed, by server. One for each TlsContext, so it goes with the trust
// it was made under: a session that is resumed is not verified again.
//
// Thread safety: all of it.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "net/tls/openssl.h"

namespace sluice::net {

class TlsSessions {
 public:
  static constexpr size_t kPeersMax = 4096;
  // A server of TLS 1.3 sends two a handshake, and each is for one use (RFC 8446 C.4).
  static constexpr size_t kPerPeerMax = 8;

  void Put(std::string_view peer, OpenSslPtr<ssl_session_st> session);
  // The newest that can be resumed; null: none. One of TLS 1.2 stays here as well, one of TLS 1.3 does not.
  OpenSslPtr<ssl_session_st> Take(std::string_view peer);
  size_t size() const;  // over all peers

 private:
  mutable std::mutex mutex_;                                                          // once a handshake
  std::map<std::string, std::deque<OpenSslPtr<ssl_session_st>>, std::less<>> peers_;  // under mutex_
};

}  // namespace sluice::net
