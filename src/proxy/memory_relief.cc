#include "proxy/memory_relief.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "proxy/call.h"
#include "proxy/listener.h"
#include "runtime/frame_pool.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::MemoryBudget;
using base::MemoryLevel;

MemoryRelief::~MemoryRelief() { context_.worker().timers().Disarm(*this); }

void MemoryRelief::Connect(std::span<WorkerContext* const> contexts) {
  for (WorkerContext* context : contexts) {
    for (WorkerContext* other : contexts) {
      if (other != context) context->memory.others_.push_back(other);
    }
  }
}

void MemoryRelief::OnScarce(bool paused) {
  if (paused) context_.metrics.memory_read_pauses->Add(context_.index());
  if (armed()) return;
  if (auto note = context_.connection.peer_log.Allow(context_.worker().now())) {
    SLUICE_LOG_WARN("memory is scarce: {} of {} bytes are held{}", MemoryBudget::held(), MemoryBudget::limit(), *note);
  }
  Wake();
  for (WorkerContext* other : others_) other->worker().Post([other] { other->memory.Wake(); });
}

void MemoryRelief::Wake() {
  if (armed() || context_.closed) return;
  const base::TimePoint now = context_.worker().now();
  LookAtClients();
  look_at_ = now + kPatience;
  context_.worker().timers().Arm(*this, now + kTick);
}

void MemoryRelief::OnTimer(base::TimePoint now) {
  MemoryBudget::Refresh();
  const MemoryLevel level = MemoryBudget::level();
  // Armed first: what is read below asks for it.
  if (level != MemoryLevel::kFree) context_.worker().timers().Arm(*this, now + kTick);
  if (level < MemoryLevel::kFull) {
    context_.connection.paused.ResumeAll();
  } else {
    const int workers = static_cast<int>(context_.worker().runtime().size());
    context_.connection.paused.ReadBites(std::max(kBitesPerTick / workers, 1));
  }
  if (level == MemoryLevel::kFree || now < look_at_) return;
  look_at_ = now + kPatience;
  GiveBack(level);
  EndHolders(level);
}

void MemoryRelief::GiveBack(MemoryLevel level) {
  if (level >= MemoryLevel::kFull) {
    for (Call* call = context_.calls.front(); call != nullptr; call = context_.calls.Next(*call)) call->DropKept();
  }
  base::Block::TrimSpares();
  runtime::TrimFrames();
  http2::HeaderList::TrimSpares();
}

std::vector<MemoryRelief::Holder> MemoryRelief::LookAtClients() {
  std::vector<Holder> out;
  for (DownstreamConnection* c = context_.downstream.front(); c != nullptr; c = context_.downstream.Next(*c)) {
    const HeldForClient held = c->LookAtHeld();
    if (held.bytes > 0) out.push_back({held, c});
  }
  return out;
}

// Whatever is held, is held for some client: responses that wait for it, its requests that wait for others.
void MemoryRelief::EndHolders(MemoryLevel level) {
  std::vector<Holder> holders = LookAtClients();
  int64_t excess = MemoryBudget::held() - MemoryBudget::FreeMark();
  if (level == MemoryLevel::kOver) {
    excess /= static_cast<int64_t>(context_.worker().runtime().size());  // the others end theirs
    std::erase_if(holders, [](const Holder& h) { return h.held.bytes < kLittleBytesOver; });
  } else {
    const auto slow = level == MemoryLevel::kTight ? kSlowTight : kSlowFull;
    std::erase_if(holders, [&](const Holder& h) {
      return h.held.bytes < kLittleBytes || h.held.moved * (slow / kPatience) >= h.held.bytes;
    });
  }
  std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) { return a.held.bytes > b.held.bytes; });
  for (const Holder& holder : holders) {
    if (excess <= 0) return;
    excess -= static_cast<int64_t>(holder.held.bytes);
    holder.client->CloseForMemory(holder.held);
  }
}

}  // namespace sluice::proxy
