#include "proxy/response_cache/stored_header_memo.h"

#include <utility>

namespace sluice::proxy {

StoredHeaderMemo::~StoredHeaderMemo() {
  if (slots_ == nullptr) return;
  for (Slot& slot : *slots_) {
    if (slot.run != nullptr) interns_.UnrefRun(slot.run);
  }
}

http2::HeaderList StoredHeaderMemo::HeadersFor(const CachedResponse& response, CacheOutcome outcome,
                                               base::TimePoint now) {
  http2::HeaderList out = Block(response.headers, outcome);
  if (SaysOutcome(outcome)) AppendAge(response.AgeAt(now), out);
  return out;
}

http2::HeaderList StoredHeaderMemo::Plain(const FlatHeaders& block) { return Block(block, CacheOutcome::kNone); }

http2::HeaderList StoredHeaderMemo::Block(const FlatHeaders& block, CacheOutcome outcome) {
  http2::HeaderList out(&interns_);
  if (slots_ == nullptr) slots_ = std::make_unique<std::array<Slot, kSlots>>();
  const uint64_t hash = block.hash() + static_cast<uint64_t>(outcome);
  Slot& slot = (*slots_)[hash % kSlots];
  if (slot.run != nullptr && slot.outcome == outcome && slot.block == block) [[likely]] {
    out.AddRun(*slot.run);
    slot.last = hash;
    return out;
  }
  AppendHeaders(block, outcome, out, &interns_);
  if (std::exchange(slot.last, hash) == hash && block.bytes() <= kBlockBytesMax) Learn(slot, block, outcome, out);
  return out;
}

void StoredHeaderMemo::Learn(Slot& slot, const FlatHeaders& block, CacheOutcome outcome,
                             const http2::HeaderList& list) {
  if (slot.run != nullptr) interns_.UnrefRun(std::exchange(slot.run, nullptr));
  if (list.empty()) return;
  http2::FieldRun* run = interns_.MakeRun(list.begin(), list.size());
  if (run == nullptr) return;
  if (run->count < list.size()) return interns_.UnrefRun(run);  // too long for one: as it is, each time
  slot.run = run;
  slot.outcome = outcome;
  slot.block = block;
}

}  // namespace sluice::proxy
