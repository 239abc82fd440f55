#include "proxy/downstream/overload.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "net/peer_address.h"
#include "proxy/call/call.h"
#include "runtime/frame_pool.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::MemoryBudget;
using base::MemoryLevel;

OverloadManager::~OverloadManager() { context_.worker().timers().Disarm(*this); }

void OverloadManager::Connect(std::span<OverloadManager* const> all) {
  for (OverloadManager* each : all) {
    for (OverloadManager* other : all) {
      if (other != each) each->others_.push_back(other);
    }
  }
}

void OverloadManager::OnScarce(bool paused) {
  if (paused) context_.metrics.memory_read_pauses->Add(context_.index());
  if (armed()) return;
  if (auto note = context_.connection.peer_log.Allow(context_.worker().now())) {
    SLUICE_LOG_WARN("memory is scarce: {} of {} bytes are held{}", MemoryBudget::held(), MemoryBudget::limit(), *note);
  }
  Wake();
  WakeOthers();
}

bool OverloadManager::TooManyCalls() const {
  const int64_t limit = MemoryBudget::limit();
  return limit > 0 && context_.metrics.calls_in_flight->Value() >= limit / 2 / kCallBytes;
}

void OverloadManager::Wake() {
  if (armed() || context_.closed) return;
  awake_.store(true, std::memory_order_relaxed);
  const base::TimePoint now = context_.worker().now();
  LookAtClients(MemoryLevel::kFree);
  look_at_ = now + kPatience;
  looked_ = false;
  full_looks_ = 0;
  context_.worker().timers().Arm(*this, now + kTick);
}

// Another worker may have gone to sleep just before the level rose again, and its clients may be the large ones.
void OverloadManager::WakeOthers() {
  for (OverloadManager* other : others_) {
    if (other->awake_.load(std::memory_order_relaxed)) continue;
    other->context_.worker().Post([other] { other->Wake(); });
  }
}

void OverloadManager::OnTimer(base::TimePoint now) {
  MemoryBudget::Refresh();
  const MemoryLevel level = MemoryBudget::level();
  awake_.store(level != MemoryLevel::kFree, std::memory_order_relaxed);
  // Armed first: what is read below asks for it.
  if (level != MemoryLevel::kFree) context_.worker().timers().Arm(*this, now + kTick);
  if (level < MemoryLevel::kFull) {
    context_.connection.paused.ResumeAll();
  } else {
    const int workers = static_cast<int>(context_.worker().runtime().size());
    context_.connection.paused.ReadBites(std::max(kBitesPerTick / workers, 1));
  }
  if (level == MemoryLevel::kFree) return;
  if (std::exchange(looked_, false)) EndHolders(level);
  if (now < look_at_) return;
  look_at_ = now + kPatience;
  full_looks_ = level < MemoryLevel::kFull ? 0 : full_looks_ + 1;
  WakeOthers();
  GiveBack(level);
  LookAtClients(level);
  looked_ = true;
  if (others_.empty() && std::exchange(looked_, false)) EndHolders(level);  // no other worker to wait for
}

void OverloadManager::GiveBack(MemoryLevel level) {
  if (level >= MemoryLevel::kFull) {
    Call::ForEach(context_, [](Call& call) { call.DropKept(); });
  }
  base::Block::TrimSpares();
  runtime::TrimFrames();
  http2::HeaderList::TrimSpares();
  http2::StreamPool::TrimSpares();
}

// `level` kFree: only to know later what has moved since.
void OverloadManager::LookAtClients(MemoryLevel level) {
  size_t leaving = 0;
  for (DownstreamConnection* c = clients_.front(); c != nullptr; c = clients_.Next(*c)) {
    leaving += c->LookAtHeld().leaving;
  }
  leaving_.store(leaving, std::memory_order_relaxed);
  const std::vector<Holder> holders = level == MemoryLevel::kFree ? std::vector<Holder>() : Holders(level);
  largest_.store(holders.empty() ? 0 : holders.front().of_address, std::memory_order_relaxed);
}

// All memory counts for some client: responses that wait for it, and its requests that wait for an endpoint. The
// largest first.
std::vector<OverloadManager::Holder> OverloadManager::Holders(MemoryLevel level) const {
  const size_t base = level == MemoryLevel::kOver ? kLittleBytesOver : kLittleBytes;
  const uint32_t in_vain = std::max(full_looks_, 1u) - 1;
  const size_t little = std::max(base >> std::min(in_vain / kLooksToHalve, uint32_t{8}), kLittleBytesMin);
  std::vector<Holder> out;
  std::map<uint64_t, size_t> of_addresses;  // a tree: peers choose the keys
  for (DownstreamConnection* c = clients_.front(); c != nullptr; c = clients_.Next(*c)) {
    const HeldForClient& held = c->held();
    // Calls that rest hold next to nothing, and may be what a client is there for: subscriptions.
    const size_t counted = level == MemoryLevel::kTight ? held.waiting : held.bytes();
    if (counted < little || held.still() == 0) continue;
    const auto slow = level == MemoryLevel::kTight ? kSlowTight : kSlowFull;
    if (level != MemoryLevel::kOver && held.moved * (slow / kPatience) >= counted) continue;
    out.push_back({held, c, held.still()});
    if (const auto key = net::PeerAddressKey(c->peer_name())) of_addresses[*key] += held.still();
  }
  for (Holder& holder : out) {
    if (const auto key = net::PeerAddressKey(holder.client->peer_name())) holder.of_address = of_addresses[*key];
  }
  std::sort(out.begin(), out.end(), [](const Holder& a, const Holder& b) {
    return std::tuple(a.of_address, a.held.still()) > std::tuple(b.of_address, b.held.still());
  });
  return out;
}

void OverloadManager::EndHolders(MemoryLevel level) {
  size_t largest = largest_.load(std::memory_order_relaxed);
  size_t leaving = leaving_.load(std::memory_order_relaxed);
  for (const OverloadManager* other : others_) {
    largest = std::max(largest, other->largest_.load(std::memory_order_relaxed));
    leaving += other->leaving_.load(std::memory_order_relaxed);
  }
  int64_t excess = MemoryBudget::held() - MemoryBudget::FreeMark() - static_cast<int64_t>(leaving);
  for (const Holder& holder : Holders(level)) {
    if (excess <= 0 || holder.of_address < largest / 2) return;
    excess -= static_cast<int64_t>(holder.held.bytes());
    holder.client->CloseForMemory(kPatience);
  }
}

}  // namespace sluice::proxy
