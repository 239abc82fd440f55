// TokenBucket against a sequential reference in wide numbers that never wrap, and the property run of the capped
// bucket.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <queue>
#include <vector>

#include "base/random.h"
#include "concurrent/token_bucket.h"

namespace sluice::concurrent {
namespace {

__extension__ typedef __int128 Wide;
const base::TimePoint kStart{std::chrono::hours(1)};

// What the bucket promises, one step at a time: rovers from 0, and the fraction of a token carried by hand.
struct Reference {
  bool capped;
  Wide rate, limit, threshold, cap, tail = 0, due = 0, released = 0, stamp = 0, fraction = 0;

  void Phase() { fraction = (rate * stamp) & ((Wide{1} << 40) - 1); }
  Wide Ceil() const { return released + cap; }
  Wide Head() const { return capped ? std::min(due, Ceil()) : due; }
  Wide Most() const { return (capped ? std::min(tail, Ceil()) : tail) + limit; }
  void Add(Wide tokens) { due += std::max<Wide>(0, std::min(tokens, Most() - due)); }
  void Replenish(Wide now, bool settle = false) {
    if (now <= stamp) return;
    const Wide sum = fraction + rate * (now - stamp);
    if ((sum >> 40) < threshold && !settle) return;
    stamp = now;
    fraction = sum & ((Wide{1} << 40) - 1);
    Add(std::min(sum >> 40, limit));
  }
  bool GiveBack(Wide n) {
    if (released + n > tail) return false;
    released += n;
    return true;
  }
};

template <bool kCapped>
void AgreesWithTheReference(uint64_t seed) {
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (int run = 0; run < 50; ++run) {
    const uint64_t origin = uint64_t{0} - random.Below(uint64_t{1} << 24) + (random.Below(2) << 63);
    TokenBucketOptions options{.rate = std::ldexp(1 + random.Unit(), static_cast<int>(random.Below(40))),
                               .limit = 1 + random.Below(uint64_t{1} << (1 + random.Below(30))),
                               .threshold = 1 + random.Below(1000),
                               .origin = origin};
    if (kCapped && random.Below(2) == 0) options.cap = 1 + random.Below(2 * options.limit);
    const uint64_t initial = random.Below(2) == 0 ? kStartFull : random.Below(options.limit + 1);
    BasicTokenBucket<kCapped> bucket(options, initial, kStart);
    Reference model{kCapped, Wide{TokenRate::Encode(options.rate)}, Wide{options.limit},
                    Wide{std::min(options.threshold, options.limit)},
                    Wide{options.cap == 0 ? options.limit : options.cap}};
    model.due = std::min(initial, options.limit);
    model.stamp = kStart.time_since_epoch().count();
    model.Phase();
    base::TimePoint now = kStart;
    std::deque<uint64_t> tickets;
    for (int step = 0; step < 20'000; ++step) {
      const auto most = static_cast<uint64_t>(kCapped ? std::min(model.cap, model.limit) : model.limit);
      const uint64_t n = random.Below(most + 1);
      switch (random.Below(10)) {
        case 0:
        case 1:
        case 2: {
          const auto jump = static_cast<int64_t>(random.Below(random.Below(50) == 0 ? 86'400'000'000'000 : 100'000));
          now += base::Nanos(random.Below(20) == 0 ? -jump : jump);
          now = std::max(now, base::TimePoint{});
          bucket.Replenish(now);
          model.Replenish(now.time_since_epoch().count());
          break;
        }
        case 3:
        case 4: {
          ASSERT_EQ(bucket.TryGrab(n), model.tail + Wide{n} <= model.Head());
          if (model.tail + Wide{n} <= model.Head()) model.tail += n;
          break;
        }
        case 5: {
          if (model.tail - model.Head() > Wide{1} << 40) break;  // a queue that grows without end shows nothing new
          const uint64_t ticket = bucket.Grab(n);
          model.tail += n;
          ASSERT_EQ(ticket, origin + static_cast<uint64_t>(model.tail));
          tickets.push_back(ticket);
          break;
        }
        case 6:
        case 7:
          if constexpr (kCapped) {
            ASSERT_EQ(bucket.Release(n), model.GiveBack(n));
          }
          break;
        case 8: {
          const bool legal = !kCapped || model.GiveBack(n);
          ASSERT_EQ(bucket.Refund(n), legal);
          if (legal) model.Add(n);
          break;
        }
        default:
          if (random.Below(20) != 0) break;
          if (random.Below(3) == 0) {
            const double rate = std::ldexp(random.Unit(), static_cast<int>(random.Below(40)));
            ASSERT_TRUE(bucket.SetRate(rate, now));
            model.Replenish(now.time_since_epoch().count(), /*settle=*/true);
            model.rate = TokenRate::Encode(rate);
            model.Phase();
          } else if (kCapped && random.Below(2) == 0) {
            model.cap = 1 + random.Below(uint64_t{1} << 20);
            if constexpr (kCapped) bucket.SetCap(static_cast<uint64_t>(model.cap));
          } else {
            model.limit = 1 + random.Below(uint64_t{1} << 20);
            model.threshold = std::min(model.threshold, model.limit);
            bucket.SetLimit(static_cast<uint64_t>(model.limit));
          }
          model.due = std::min(model.due, std::max(model.Most(), model.tail));
      }
      ASSERT_EQ(bucket.tail() - origin, static_cast<uint64_t>(model.tail));
      ASSERT_EQ(bucket.head() - origin, static_cast<uint64_t>(model.Head())) << step;
      ASSERT_LE(model.due - model.tail, model.limit);
      if constexpr (kCapped) {
        ASSERT_EQ(bucket.outstanding(), static_cast<uint64_t>(model.tail - model.released));
      }
      while (!tickets.empty() && bucket.Deficiency(tickets.front()) == 0) tickets.pop_front();
      if (!tickets.empty()) {
        ASSERT_EQ(bucket.Deficiency(tickets.back()),
                  static_cast<uint64_t>(Wide{tickets.back() - origin} - model.Head()));
        ASSERT_GE(bucket.Deficiency(tickets.back()), bucket.Deficiency(tickets.front()));
      }
    }
  }
}
TEST(TokenBucketModel, AMillionRandomStepsAgreeWithTheReference) { AgreesWithTheReference<false>(4711); }
TEST(TokenBucketModel, CappedAMillionRandomStepsAgreeWithTheReference) { AgreesWithTheReference<true>(4712); }

// The original's capped arithmetic: what time brings while head stands at ceil is lost.
struct Forfeiting {
  Forfeiting(const TokenBucketOptions& options, uint64_t, base::TimePoint now)
      : rate(TokenRate::Encode(options.rate)),
        ceil(options.cap),
        head(std::min(options.limit, options.cap)),
        stamp(now) {}
  bool TryTake(uint64_t n, base::TimePoint now) {
    const uint64_t worth = TokenRate::Worth(rate, TokenRate::Instant(stamp), TokenRate::Instant(now));
    stamp = now;
    head += std::min(worth, ceil - head);
    if (tail + n > head) return false;
    tail += n;
    return true;
  }
  bool Release(uint64_t n) {
    ceil += n;
    return true;
  }
  uint64_t rate, ceil, head, tail = 0;
  base::TimePoint stamp;
};

// One loop whose turns take 10 us, but one in ten stalls for 300 us first. Each turn sees the calls that have ended and
// starts as many as it may; there is always more to start. Returns the share of the rate that was reached.
template <typename Bucket>
double Share(double cap_us, int latency_us) {
  using std::chrono::microseconds;
  constexpr double kRate = 1e6;
  base::Random random(99);
  const auto cap = static_cast<uint64_t>(cap_us * kRate * 1e-6) * kTokensPerCall;
  Bucket bucket({.rate = kRate * kTokensPerCall, .limit = cap, .cap = cap}, kStartFull, kStart);
  std::queue<base::TimePoint> under_way;
  uint64_t started = 0;
  base::TimePoint now = kStart;
  while (now < kStart + std::chrono::seconds(1)) {
    now += microseconds(10);
    if (random.Below(10) == 0) now += microseconds(300);
    while (!under_way.empty() && under_way.front() <= now) {
      EXPECT_TRUE(bucket.Release(kTokensPerCall));
      under_way.pop();
    }
    while (bucket.TryTake(kTokensPerCall, now)) {
      ++started;
      under_way.push(now + microseconds(latency_us));
    }
  }
  return static_cast<double>(started) / (kRate * std::chrono::duration<double>(now - kStart).count());
}

TEST(TokenBucketProperty, CappedReachesItsRateDespiteStalls) {
  for (int latency : {250, 400, 480}) {
    std::printf("latency %d us: cap 500 us forfeited %.2f, carried %.2f; cap 1 ms forfeited %.2f, carried %.2f\n",
                latency, Share<Forfeiting>(500, latency), Share<CappedTokenBucket>(500, latency),
                Share<Forfeiting>(1000, latency), Share<CappedTokenBucket>(1000, latency));
  }
  EXPECT_GE(Share<CappedTokenBucket>(500, 400), 0.90);
  EXPECT_GE(Share<CappedTokenBucket>(500, 250), 0.99);
  EXPECT_GE(Share<CappedTokenBucket>(1000, 480), 0.99);
  EXPECT_LT(Share<Forfeiting>(500, 400), Share<CappedTokenBucket>(500, 400));
}

}  // namespace
}  // namespace sluice::concurrent
