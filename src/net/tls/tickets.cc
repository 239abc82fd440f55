#include "net/tls/tickets.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <cstring>

#include "base/check.h"

namespace sluice::net {

TlsTicketKeys::Key TlsTicketKeys::NewKey() {
  Key key;
  // Fails where the system has no random numbers: nothing that is to be secret may go on then.
  SLUICE_CHECK(RAND_bytes(key.name.data(), key.name.size()) == 1);
  SLUICE_CHECK(RAND_priv_bytes(key.cipher.data(), key.cipher.size()) == 1);
  SLUICE_CHECK(RAND_priv_bytes(key.mac.data(), key.mac.size()) == 1);
  return key;
}

TlsTicketKeys::TlsTicketKeys() : current_(NewKey()), former_(NewKey()) {}

TlsTicketKeys::~TlsTicketKeys() {
  OPENSSL_cleanse(&current_, sizeof(current_));
  OPENSSL_cleanse(&former_, sizeof(former_));
}

void TlsTicketKeys::RotateIfDue(base::TimePoint now) {
  {
    std::lock_guard lock(mutex_);
    const bool first = due_ == base::TimePoint();
    const bool due = !first && now >= due_;
    if (first || due) due_ = now + kLifetime;
    if (!due) return;
  }
  Rotate();
}

void TlsTicketKeys::Rotate() {
  const Key next = NewKey();
  std::lock_guard lock(mutex_);
  former_ = current_;
  current_ = next;
}

TlsTicketKeys::Key TlsTicketKeys::current() const {
  std::lock_guard lock(mutex_);
  return current_;
}

TlsTicketKeys::Found TlsTicketKeys::Find(const uint8_t name[16], Key* out) const {
  std::lock_guard lock(mutex_);
  if (std::memcmp(name, current_.name.data(), current_.name.size()) == 0) {
    *out = current_;
    return Found::kCurrent;
  }
  if (std::memcmp(name, former_.name.data(), former_.name.size()) != 0) return Found::kNo;
  *out = former_;
  return Found::kFormer;
}

}  // namespace sluice::net
