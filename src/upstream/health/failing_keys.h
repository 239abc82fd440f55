// FailingKeys: which keys' calls have failed lately, and where. What one key meets wherever it goes is its own, and
// what it meets again and again at one endpoint is not what other callers meet there.
//
//   a failure of a key                                    counts against the endpoint
//   the first for a while                                 yes
//   again at that endpoint                                while the key makes at most a fifth of what counts there
//   at another endpoint than before, within kMemory       no: it has followed the key
//
// A key that fails kRow times at one endpoint moves: its calls pass that endpoint over for kMoved, as if it were
// ejected for this key alone. Where it fails at the next endpoint too, it is the key's own, and it comes back.
//
// A table of kPlaces, each key in one place: a newer key takes it. One for each cluster and worker; not thread-safe;
// time is a parameter.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"

namespace sluice::upstream {

class FailingKeys {
 public:
  static constexpr size_t kPlaces = 256;
  static constexpr base::Nanos kMemory = std::chrono::seconds(10);
  // No key makes more than one in so many of the failures that count against an endpoint.
  static constexpr uint32_t kShare = 5;
  static constexpr uint32_t kRow = 5;
  static constexpr base::Nanos kMoved = std::chrono::seconds(5);
  // So many failures elsewhere show that a key carries them with it.
  static constexpr uint32_t kElsewhere = 2;

  // What counts against one endpoint, on this worker.
  struct Evidence {
    base::TimePoint since{};  // begins anew after kMemory
    uint32_t total = 0;
  };

  // A call with `key` has failed at `endpoint`, which is only compared. Whether that counts; then it is added to `of`.
  bool Counts(uint64_t key, const void* endpoint, Evidence& of, base::TimePoint now);
  // It has failed there with others, of whose failures one counts: what it meets elsewhere may have followed it.
  void Remember(uint64_t key, const void* endpoint, base::TimePoint now);
  // Calls with `key` pass `endpoint` over while another one takes them.
  bool PassesOver(uint64_t key, const void* endpoint, base::TimePoint now) const {
    if (now >= moved_until_) [[likely]]
      return false;
    const Place& place = PlaceOf(key);
    return place.key == key && place.at == endpoint && place.moved_until > now;
  }

 private:
  struct Place {
    uint64_t key = 0;
    const void* at = nullptr;  // where it failed first; null: the place is free
    base::TimePoint since{};   // it is known; after three memories it is judged anew
    base::TimePoint last{};    // it failed
    base::TimePoint window{};  // Evidence::since that `counted` is of
    base::TimePoint moved_until{};
    uint32_t counted = 0, row = 0, elsewhere = 0;
  };
  Place& Failed(uint64_t key, const void* endpoint, base::TimePoint now);
  const Place& PlaceOf(uint64_t key) const { return places_[key % kPlaces]; }

  std::array<Place, kPlaces> places_{};
  base::TimePoint moved_until_{};  // of all
};

}  // namespace sluice::upstream
