// A backend of known capacity which executes what its callers have given up, and five times as many calls as it can do,
// in simulated time: a limit keeps what the backend can do, and lets it do nothing in vain.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::GrpcRequest;
using h2::Headers;
using h2::With;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

// Calls a second, and the deadline of each.
struct Load {
  double rate;
  milliseconds deadline;
};

class CallOverloadTest : public test::ProxyFixture {
 public:
  static constexpr size_t kSlots = 10;
  static constexpr microseconds kStep{500};
  static constexpr double kCapacity = 1000;  // kSlots / 10 ms

  struct Outcome {
    size_t calls = 0, ok = 0, refused = 0, late = 0, executed = 0;
    double in_vain = 0, goodput = 0;  // shares: of what was executed, of the capacity
  };

  // Of `seconds`, after a warm-up of half a second.
  Outcome Simulate(const Load& load, double seconds) {
    listener.http2.concurrent_streams_max = 4000;
    Start({"10.0.0.1:1"});
    for (int i = 0; i < 4; ++i) clients_.push_back(&Client());
    std::poisson_distribution<int> arrivals(load.rate * std::chrono::duration<double>(kStep).count());
    Outcome before = Run(load, arrivals, 0.5), after = Run(load, arrivals, seconds);
    Outcome out{after.calls - before.calls, after.ok - before.ok, after.refused - before.refused,
                after.late - before.late, after.executed - before.executed};
    out.in_vain = static_cast<double>(out.executed) - static_cast<double>(out.ok);
    out.in_vain = std::max(0.0, out.in_vain) / static_cast<double>(out.executed);
    out.goodput = static_cast<double>(out.ok) / (std::min(kCapacity, load.rate) * seconds);
    return out;
  }

 private:
  using Fixture = test::ProxyFixture;

  Outcome Run(const Load& load, std::poisson_distribution<int>& arrivals, double seconds) {
    const auto steps = static_cast<int>(seconds / std::chrono::duration<double>(kStep).count());
    const std::string timeout = std::to_string(load.deadline.count()) + "m";
    for (int step = 0; step < steps; ++step) {
      for (int n = arrivals(random_); n > 0; --n) {
        FramePeer& client = *clients_[total_.calls % clients_.size()];
        const auto id = static_cast<uint32_t>(1 + 2 * (total_.calls++ / clients_.size()));
        client.Send(Headers(id, Block(With(GrpcRequest(), {{"grpc-timeout", timeout}})), kLast));
      }
      Advance(kStep);
      Work();
      Fixture::Run();
      Look();
    }
    return total_;
  }

  // The backend: takes what is new into its queue, and works. What was reset is executed as well.
  void Work() {
    if (!Connected("10.0.0.1:1")) return;
    const base::TimePoint now = time.clock.Now();
    FramePeer& up = Up();
    for (auto it = up.streams.upper_bound(seen_); it != up.streams.end(); ++it) {
      if (it->second.headers.empty()) continue;
      seen_ = it->first;
      queue_.push_back(it->first);
    }
    std::uniform_int_distribution<int> time_of_one(5000, 15000);
    while (true) {
      // A slot takes the next call when the one before is done, be it between two steps.
      base::TimePoint free = now - kStep;
      if (running_.size() == kSlots) {
        if (running_.begin()->first > now) return;
        free = running_.begin()->first;
        End(up);
      } else if (!running_.empty() && running_.begin()->first <= now && queue_.empty()) {
        End(up);
        continue;
      }
      if (queue_.empty()) {
        if (running_.empty() || running_.begin()->first > now) return;
        continue;
      }
      running_.emplace(std::max(free, now - kStep) + microseconds(time_of_one(random_)), queue_.front());
      queue_.pop_front();
    }
  }
  void End(FramePeer& up) {
    const uint32_t id = running_.begin()->second;
    running_.erase(running_.begin());
    ++total_.executed;
    if (!up.streams[id].reset) Respond(up, id, "");
  }

  // What clients have been told since the last look.
  void Look() {
    for (FramePeer* client : clients_) {
      for (auto it = client->streams.begin(); it != client->streams.end();) {
        if (it->first == 0 || !it->second.end) {
          ++it;
          continue;
        }
        const std::string status = it->second.Value("grpc-status");
        total_.ok += status == "0";
        total_.refused += status == "8";
        total_.late += status == "4";
        it = client->streams.erase(it);
      }
    }
  }

  std::mt19937 random_{1};
  std::vector<FramePeer*> clients_;
  Outcome total_;
  uint32_t seen_ = 0;
  std::deque<uint32_t> queue_;
  std::multimap<base::TimePoint, uint32_t> running_;  // by the time at which they are done
};

class CallOverload : public CallOverloadTest, public testing::WithParamInterface<int> {};

TEST_P(CallOverload, FiveTimesTheCapacityKeepsTheGoodput) {
  cluster.concurrency = {.max = 12};
  const Outcome out = Simulate({5000, milliseconds(GetParam())}, 1);
  EXPECT_GE(out.goodput, 0.97) << "ok " << out.ok << " executed " << out.executed;
  EXPECT_LE(out.in_vain, 0.005);
  EXPECT_GE(out.refused, out.calls * 7 / 10);
}
INSTANTIATE_TEST_SUITE_P(Deadlines, CallOverload, testing::Values(1000, 250, 100));

TEST_F(CallOverloadTest, BelowTheCapacityNoCallIsRefused) {
  cluster.concurrency = {.max = 12};
  const Outcome out = Simulate({900, milliseconds(1000)}, 3);
  EXPECT_EQ(out.refused, 0u);
  EXPECT_EQ(out.late, 0u);
}

// The service's time is known, so calls leave the queue while there is time for it.
TEST_F(CallOverloadTest, WithoutABoundInTimeTheDeadlineBoundsTheWait) {
  cluster.concurrency = {.max = 12, .queue_time = milliseconds(0)};
  const Outcome out = Simulate({5000, milliseconds(150)}, 1);
  EXPECT_GE(out.goodput, 0.97);
  EXPECT_LE(out.in_vain, 0.005);
}

}  // namespace
}  // namespace sluice::proxy
