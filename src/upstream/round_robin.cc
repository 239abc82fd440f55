#include "upstream/round_robin.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "absl/container/inlined_vector.h"
#include "base/check.h"

namespace sluice::upstream {
namespace {

// Slots of each endpoint: its weight in steps, divided by what all have in common, and scaled down if that is too many.
std::vector<uint64_t> SlotCounts(BalancerEndpoints endpoints) {
  std::vector<uint64_t> counts;
  uint64_t total = 0, common = 0;
  for (const BalancerEndpoint& endpoint : endpoints) {
    double steps = std::round(endpoint.weight * RoundRobin::kWeightSteps);
    counts.push_back(steps >= 1 ? static_cast<uint64_t>(std::min(steps, 1e9)) : 1);
    common = std::gcd(common, counts.back());
  }
  for (uint64_t& count : counts) total += count /= common;
  if (total <= RoundRobin::kScheduleMax) return counts;
  double scale = static_cast<double>(RoundRobin::kScheduleMax) / static_cast<double>(total);
  for (uint64_t& count : counts) {
    count = std::max<uint64_t>(1, static_cast<uint64_t>(std::round(static_cast<double>(count) * scale)));
  }
  return counts;
}

// The list in the order of its names. `previous`: that of a list before, or empty; its endpoints need no sorting.
std::vector<uint32_t> ByName(BalancerEndpoints endpoints, std::span<const uint32_t> previous) {
  constexpr uint32_t kGone = UINT32_MAX;
  std::vector<uint32_t> now(previous.size(), kGone);  // place before -> place now
  std::vector<uint32_t> fresh, kept, out(endpoints.size());
  for (uint32_t i = 0; i < endpoints.size(); ++i) {
    if (endpoints[i].from < now.size())
      now[endpoints[i].from] = i;
    else
      fresh.push_back(i);
  }
  kept.reserve(now.size());
  for (const uint32_t former : previous) {
    if (const uint32_t place = now[former]; place != kGone) kept.push_back(place);
  }
  auto before = [&](uint32_t a, uint32_t b) { return endpoints[a].name < endpoints[b].name; };
  std::sort(fresh.begin(), fresh.end(), before);
  // The few new ones find their places; what lies between is copied.
  auto from = kept.begin();
  auto to = out.begin();
  for (uint32_t i : fresh) {
    const auto place = std::lower_bound(from, kept.end(), i, before);
    to = std::copy(from, place, to);
    *to++ = i;
    from = place;
  }
  std::copy(from, kept.end(), to);
  return out;
}

// Slot j of an endpoint with c slots wants to stand at (2j + 1) / 2c of the circle; all slots in that order.
// This is what smooth weighted round robin comes to, worked out once. Equal places go by name, so that lists
// in any order agree.
std::vector<uint32_t> MakeSchedule(BalancerEndpoints endpoints, const std::vector<uint32_t>& by_name) {
  struct Slot {
    double place;
    uint32_t rank;  // of the name
  };
  std::vector<uint64_t> counts = SlotCounts(endpoints);
  if (std::all_of(counts.begin(), counts.end(), [](uint64_t count) { return count == 1; })) return by_name;
  std::vector<Slot> slots;
  for (uint32_t rank = 0; rank < by_name.size(); ++rank) {
    const uint64_t count = counts[by_name[rank]];
    const double c = static_cast<double>(count);
    for (uint64_t j = 0; j < count; ++j) slots.push_back({(static_cast<double>(j) + 0.5) / c, rank});
  }
  std::sort(slots.begin(), slots.end(),
            [](const Slot& a, const Slot& b) { return a.place != b.place ? a.place < b.place : a.rank < b.rank; });
  std::vector<uint32_t> schedule;
  schedule.reserve(slots.size());
  for (const Slot& slot : slots) schedule.push_back(by_name[slot.rank]);
  return schedule;
}

}  // namespace

RoundRobin::RoundRobin(BalancerEndpoints endpoints, uint32_t workers, const RoundRobin* previous)
    : endpoints_(endpoints.size()),
      by_name_(ByName(endpoints, previous == nullptr ? std::span<const uint32_t>() : previous->by_name_)),
      schedule_(MakeSchedule(endpoints, by_name_)),
      digest_(DigestOfWeights(Policy::kRoundRobin, endpoints)),
      workers_(std::max(workers, 1u)),
      cursors_(std::make_unique<Cursor[]>(workers_)) {}

uint32_t RoundRobin::Pick(const PickContext& context) const {
  if (schedule_.empty()) return kNone;
  SLUICE_DCHECK(context.worker < workers_);
  Cursor& cursor = cursors_[context.worker % workers_];
  uint32_t at = cursor.next.load(std::memory_order_relaxed);
  if (at == kUnset || context.again) [[unlikely]]
    at = static_cast<uint32_t>(context.random % schedule_.size());
  const uint32_t index = schedule_[at];
  const Place place = context.ok(index) ? Place{index, After(at)} : FindBehind(at, context);
  if (!context.again) cursor.next.store(place.next, std::memory_order_relaxed);
  return place.index;
}

// The endpoint of slot `at` refused. The cursor moves past the slot that is taken in its place, so that the
// refused one's calls go round all others and not to its neighbour alone.
RoundRobin::Place RoundRobin::FindBehind(uint32_t at, const PickContext& context) const {
  absl::InlinedVector<bool, 64> asked(endpoints_, false);
  asked[schedule_[at]] = true;
  // Heavy endpoints fill the schedule, so the walk is bounded; those it did not come to are asked in the list's order.
  size_t steps = std::min(schedule_.size() - 1, 4 * endpoints_);
  for (uint32_t i = After(at); steps > 0; --steps, i = After(i)) {
    const uint32_t index = schedule_[i];
    if (asked[index]) continue;
    asked[index] = true;
    if (context.ok(index)) return {index, After(i)};
  }
  for (uint32_t index = 0; index < endpoints_; ++index) {
    if (!asked[index] && context.ok(index)) return {index, After(at)};
  }
  return {kNone, After(at)};
}

std::vector<double> RoundRobin::Shares() const {
  std::vector<double> shares(endpoints_, 0);
  for (uint32_t index : schedule_) shares[index] += 1;
  for (double& share : shares) share /= static_cast<double>(schedule_.size());
  return shares;
}

}  // namespace sluice::upstream
