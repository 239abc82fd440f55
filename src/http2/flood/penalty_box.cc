#include "http2/flood/penalty_box.h"

#include <algorithm>

#include "net/peer_address.h"

namespace sluice::http2 {
namespace {

// No key of an address: the first half of ff..., a multicast address.
constexpr uint64_t kNoAddress = UINT64_MAX;

uint64_t KeyOf(std::string_view peer) { return net::PeerAddressKey(peer).value_or(kNoAddress); }

}  // namespace

void PenaltyBox::Note(std::string_view peer, base::TimePoint now) {
  const uint64_t key = KeyOf(peer);
  std::lock_guard lock(mutex_);
  if (addresses_.size() >= kAddressesMax && !addresses_.contains(key)) MakeRoom(now);
  base::TimePoint& until = addresses_[key];
  until = std::min(std::max(until, now) + kForgets, now + kCountMax * kForgets);
  until_.store(std::max(until_.load(std::memory_order_relaxed), until), std::memory_order_relaxed);
}

// Peers with that many addresses pay for one walk over the table each time they are cut off.
void PenaltyBox::MakeRoom(base::TimePoint now) {
  std::erase_if(addresses_, [now](const auto& entry) { return entry.second <= now; });
  if (addresses_.size() < kAddressesMax) return;
  addresses_.erase(std::min_element(addresses_.begin(), addresses_.end(),
                                    [](const auto& a, const auto& b) { return a.second < b.second; }));
}

uint32_t PenaltyBox::Count(std::string_view peer, base::TimePoint now) const {
  if (now >= until_.load(std::memory_order_relaxed)) return 0;
  const uint64_t key = KeyOf(peer);
  std::lock_guard lock(mutex_);
  auto it = addresses_.find(key);
  if (it == addresses_.end() || now >= it->second) return 0;
  const base::Nanos left = it->second - now;
  return static_cast<uint32_t>((left + kForgets - base::Nanos(1)) / kForgets);
}

base::Nanos PenaltyBox::Wait(std::string_view peer, base::TimePoint now, base::Nanos most) const {
  const uint32_t count = Count(peer, now);
  return most * (count * count) / (kCountMax * kCountMax);
}

size_t PenaltyBox::size() const {
  std::lock_guard lock(mutex_);
  return addresses_.size();
}

}  // namespace sluice::http2
