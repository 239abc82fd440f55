// AnnounceSet: what is announced is taken back, and a stop behind a drain or a reload waits for that.
#include "server/announce_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include "metrics/registry.h"
#include "support/socket_worker.h"
#include "unit/discovery/etcd/played_etcd.h"

namespace sluice::server {
namespace {

using discovery::AnnounceOptions;
using discovery::Announcer;
using std::chrono::milliseconds;
using std::chrono::seconds;

class AnnounceSetTest : public ::testing::Test {
 protected:
  ~AnnounceSetTest() override { time.runtime.Shutdown(); }
  AnnounceOptions Options(const std::string& name) {
    AnnounceOptions options;
    options.etcd.servers = {etcd.address()};
    options.etcd.prefix = "/users/";
    options.endpoint.name = name;
    options.endpoint.address = *net::Address::Parse("10.0.0.7:7070");
    return options;
  }
  // Time goes on as on the wall while the test runs: servers answer in real time.
  bool Until(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    for (auto last = std::chrono::steady_clock::now(); !done(); std::this_thread::yield()) {
      const auto now = std::chrono::steady_clock::now();
      if (now > until) return false;
      time.clock.Advance(std::min<base::Nanos>(now - last, milliseconds(20)));
      last = now;
      time.Run();
    }
    return true;
  }
  bool Announced(const std::string& name) {
    return Until([&] { return etcd.Get("/users/" + name).has_value(); });
  }

  test::PlayedEtcd etcd;
  test::SocketWorker time;
  metrics::Registry registry{1};
  AnnounceSet set{time.runtime, registry, [] { return true; }};
};

// A second SIGTERM while the first one's drain takes the key back.
TEST_F(AnnounceSetTest, AStopWaitsForTheWithdrawalThatADrainHasBegun) {
  set.Apply({Options("a")});
  ASSERT_TRUE(Announced("a"));
  etcd.SetSilent(true);
  bool drained = false, stopped = false;
  set.Withdraw([&] { drained = true; });
  EXPECT_TRUE(set.empty());
  set.Withdraw([&] { stopped = true; });
  time.Run();
  EXPECT_FALSE(drained);
  EXPECT_FALSE(stopped);
  etcd.SetSilent(false);
  ASSERT_TRUE(Until([&] { return stopped; }));
  EXPECT_TRUE(drained);
  EXPECT_EQ(etcd.Get("/users/a"), std::nullopt);
}

TEST_F(AnnounceSetTest, AStopWaitsForWhatAReloadHasEnded) {
  set.Apply({Options("a"), Options("b")});
  ASSERT_TRUE(Announced("a") && Announced("b"));
  set.Apply({Options("b")});
  bool stopped = false;
  set.Withdraw([&] { stopped = true; });
  ASSERT_TRUE(Until([&] { return stopped; }));
  EXPECT_EQ(etcd.Get("/users/a"), std::nullopt);
  EXPECT_EQ(etcd.Get("/users/b"), std::nullopt);
}

TEST_F(AnnounceSetTest, WithoutEtcdTheWaitIsBounded) {
  set.Apply({Options("a")});
  ASSERT_TRUE(Announced("a"));
  etcd.SetSilent(true);
  int told = 0;
  const base::TimePoint before = time.clock.Now();
  set.Withdraw([&] { ++told; });
  set.Withdraw([&] { ++told; });
  ASSERT_TRUE(Until([&] { return told == 2; }));
  EXPECT_LE(time.clock.Now() - before, Announcer::kWithdrawMax + Announcer::kSettle);
  etcd.SetSilent(false);
}

TEST_F(AnnounceSetTest, NothingIsWaitedForWhereNothingIsAnnounced) {
  int told = 0;
  set.Withdraw([&] { ++told; });
  EXPECT_EQ(told, 1);
  set.Apply({Options("a")});
  ASSERT_TRUE(Announced("a"));
  set.Withdraw([&] { ++told; });
  ASSERT_TRUE(Until([&] { return told == 2; }));
  set.Withdraw([&] { ++told; });
  EXPECT_EQ(told, 3);
}

}  // namespace
}  // namespace sluice::server
