// OutcomeCell: what one worker has seen of an endpoint's answers, counted for the judge of its health.
//
// One worker writes it, with plain loads and stores; the judge reads it from any thread. All accesses are relaxed: the
// counters publish nothing but themselves, and a sum that is a moment old is good enough for a verdict that is looked
// at twice. Counters wrap; the judge goes by differences.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "metrics/registry.h"

namespace sluice::upstream {

// What went wrong, as evidence names it.
enum class Cause : uint8_t {
  kNone,
  kConnect,      // no connection, or none that a server's SETTINGS came on
  kNoStream,     // its server allows no streams on them
  kLost,         // the connection ended under the call
  kReset,        // RST_STREAM
  kProtocol,     // broke HTTP/2
  kUnavailable,  // status UNAVAILABLE without pushback
  kDeadline,     // the call's deadline passed, and the call had spent its time there
  // From here on: statuses that an application gives too. They count in the error rate alone.
  kInternal,   // status INTERNAL
  kUnknown,    // status UNKNOWN, or no status
  kCancelled,  // status CANCELLED, though neither the client had cancelled nor the deadline passed
};
constexpr bool IsSoft(Cause cause) { return cause >= Cause::kInternal; }
std::string_view ToString(Cause cause);

struct alignas(64) OutcomeCell {
  // Attempts begun, counted also where the health is not judged: with a request that its client had ended, and others.
  std::atomic<uint64_t> sent{0}, unended{0};
  std::atomic<uint32_t> ended_later{0};  // of `unended`, those whose requests have ended since, or that were answered
  std::atomic<uint32_t> good{0};
  std::atomic<uint32_t> bad{0};       // failures of the endpoint's own making
  std::atomic<uint32_t> apart{0};     // of `bad`, passed deadlines and lost connections
  std::atomic<uint32_t> soft{0};      // those of a soft cause
  std::atomic<uint32_t> row{0};       // of `bad`, since the last good one
  std::atomic<uint32_t> answered{0};  // responses that have begun
  // Of those that are owed an answer, those that their clients took back before it.
  std::atomic<uint32_t> withdrawn{0};
  std::atomic<Cause> cause{Cause::kNone};
  std::atomic<base::TimePoint> answered_at{base::TimePoint::min()};  // when the last response began
  // Written and read by the judge alone: `bad` as it was last seen.
  uint32_t judged_bad = 0;
  // Time to first byte, by metrics::Histogram's buckets.
  std::array<std::atomic<uint32_t>, metrics::Histogram::kBuckets> first_byte{};

  // The writer's side.
  void Sent(bool whole) { Add(whole ? sent : unended); }
  void Owes() { Add(ended_later); }
  void Good() {
    Add(good);
    row.store(0, std::memory_order_relaxed);
  }
  void Bad(Cause why) {
    Add(bad);
    Add(row);
    if (why == Cause::kDeadline || why == Cause::kLost) Add(apart);
    cause.store(why, std::memory_order_relaxed);
  }
  void Soft(Cause why) {
    Add(soft);
    cause.store(why, std::memory_order_relaxed);
  }
  void Withdrawn() { Add(withdrawn); }
  // `bucket`: metrics::Histogram::BucketOf.
  void Answered(size_t bucket, base::TimePoint now) {
    Add(answered);
    answered_at.store(now, std::memory_order_relaxed);
    Add(first_byte[bucket]);
  }

 private:
  template <typename T>
  static void Add(std::atomic<T>& cell) {
    cell.store(cell.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
};

}  // namespace sluice::upstream
