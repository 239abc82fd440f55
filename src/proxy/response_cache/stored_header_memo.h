// StoredHeaderMemo: the header blocks of stored responses as one worker sends them, made once and sent many times.
//
// Stored headers are flat bytes that belong to no worker; to send them, each field must be found among the worker's
// interned ones. Hits send the same few blocks again and again, mostly the same for all entries of a method, so a
// worker keeps them as FieldRuns, with `sluice-cache`, by the bytes that they were made from. `age` differs and follows
// the run.
//
//   slot = hash(block, outcome) -> { the block's bytes, compared whole; outcome; its run }
//
// A run is made when a block comes the second time in a row to its slot: blocks that differ from entry to entry (an
// etag) leave the slots to others' and cost what they did.
//
// Bound: kSlots runs and copies of blocks of at most kBlockBytesMax. Thread safety: its worker's. Nothing here
// suspends.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "http2/fields/header.h"
#include "proxy/response_cache/entry.h"

namespace sluice::proxy {

class StoredHeaderMemo {
 public:
  // `interns`: the worker's; it must live longer.
  explicit StoredHeaderMemo(http2::InternTable& interns) : interns_(interns) {}
  ~StoredHeaderMemo();
  StoredHeaderMemo(const StoredHeaderMemo&) = delete;
  StoredHeaderMemo& operator=(const StoredHeaderMemo&) = delete;

  // As response.HeadersFor().
  http2::HeaderList HeadersFor(const CachedResponse& response, CacheOutcome outcome, base::TimePoint now);
  // Trailers, or any block that is sent as it is.
  http2::HeaderList Plain(const FlatHeaders& block);

 private:
  static constexpr size_t kSlots = 64;
  static constexpr size_t kBlockBytesMax = 2048;
  struct Slot {
    uint64_t last = 0;  // hash of the last block that came here
    FlatHeaders block;
    CacheOutcome outcome = CacheOutcome::kNone;
    http2::FieldRun* run = nullptr;  // of `block` with `outcome`. Holds a reference
  };

  http2::HeaderList Block(const FlatHeaders& block, CacheOutcome outcome);
  void Learn(Slot& slot, const FlatHeaders& block, CacheOutcome outcome, const http2::HeaderList& list);

  http2::InternTable& interns_;
  std::unique_ptr<std::array<Slot, kSlots>> slots_;  // made when there is something to keep
};

}  // namespace sluice::proxy
