#include "proxy/downstream/connection_limits.h"

#include "net/peer_address.h"

namespace sluice::proxy {

ConnectionLimits::PlacePtr ConnectionLimits::Enter(std::string_view peer_name, uint32_t per_peer_max) {
  std::optional<uint64_t> key = per_peer_max > 0 ? net::PeerAddressKey(peer_name) : std::nullopt;
  if (key) {
    std::lock_guard lock(mutex_);
    uint32_t& count = peers_[*key];
    if (count >= per_peer_max) return nullptr;  // so it is not 0: no entry is left behind
    ++count;
  }
  open_.fetch_add(1, std::memory_order_relaxed);
  return PlacePtr(new Place(shared_from_this(), key));
}

ConnectionLimits::Place::~Place() {
  limits_->open_.fetch_sub(1, std::memory_order_relaxed);
  if (!key_) return;
  std::lock_guard lock(limits_->mutex_);
  auto it = limits_->peers_.find(*key_);
  if (--it->second == 0) limits_->peers_.erase(it);
}

}  // namespace sluice::proxy
