// Announcer against a played server: the key is there while the process is ready, whatever happens to the server, the
// lease or the key, and gone when it is told to withdraw.
#include "discovery/etcd/announcer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "integration/support/temp_dir.h"
#include "support/socket_worker.h"
#include "unit/discovery/etcd/played_etcd.h"

namespace sluice::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::PlayedEtcd;
using ::testing::HasSubstr;
using State = Announcer::State;

constexpr const char* kKey = "/users/me";

class AnnouncerTest : public ::testing::Test {
 protected:
  AnnouncerTest() {
    options.etcd.prefix = "/users/";
    options.endpoint.name = "me";
    options.endpoint.address = *net::Address::Parse("10.0.0.7:7070");
    options.lease = seconds(2);
  }
  ~AnnouncerTest() override { time.runtime.Shutdown(); }
  void Start() {
    if (options.etcd.servers.empty()) options.etcd.servers = {etcd.address()};
    announcer = std::make_shared<Announcer>(options, [this] { return ready; });
    announcer->Start(time.runtime);
  }
  // Time goes on as on the wall: servers answer in real time.
  bool Until(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    for (auto last = std::chrono::steady_clock::now(); !done(); std::this_thread::yield()) {
      const auto now = std::chrono::steady_clock::now();
      if (now > until) return false;
      // Not as long as the test was kept from running: what is to be fast must not seem slow for that.
      time.clock.Advance(std::min<base::Nanos>(now - last, milliseconds(20)));
      last = now;
      time.Run();
    }
    return true;
  }
  bool Announced() {
    return Until([&] { return announcer->state() == State::kAnnounced && etcd.Get(kKey).has_value(); });
  }
  bool Withdraw() {
    bool done = false;
    announcer->Withdraw([&] { done = true; });
    return Until([&] { return done; });
  }

  PlayedEtcd etcd;
  AnnounceOptions options;
  bool ready = true;
  test::SocketWorker time;
  std::shared_ptr<Announcer> announcer;
};

TEST_F(AnnouncerTest, TheKeyIsThereWithALeaseOnceItIsReady) {
  options.endpoint.weight = 2;
  ready = false;
  Start();
  for (int i = 0; i < 5; ++i) {
    time.clock.Advance(seconds(1));
    time.Run();
  }
  EXPECT_EQ(announcer->state(), State::kWaiting);
  EXPECT_EQ(etcd.calls("LeaseGrant"), 0);
  ready = true;
  ASSERT_TRUE(Announced());
  EXPECT_EQ(etcd.Get(kKey), "10.0.0.7:7070@2");
  ASSERT_EQ(etcd.Leases().size(), 1u);
  EXPECT_EQ(etcd.LeaseOf(kKey), etcd.Leases()[0]);
  EXPECT_EQ(announcer->error(), "");
}

TEST_F(AnnouncerTest, TheLeaseIsRenewedAndTheKeyLeftAlone) {
  Start();
  ASSERT_TRUE(Announced());
  ASSERT_TRUE(Until([&] { return etcd.calls("LeaseKeepAlive") >= 3; }));
  EXPECT_EQ(etcd.calls("Put"), 1);
  EXPECT_EQ(etcd.calls("LeaseGrant"), 1);
}

TEST_F(AnnouncerTest, ItIsWithdrawnWhenTold) {
  Start();
  ASSERT_TRUE(Announced());
  ASSERT_TRUE(Withdraw());
  EXPECT_EQ(etcd.Get(kKey), std::nullopt);
  EXPECT_TRUE(etcd.Leases().empty());
  EXPECT_EQ(announcer->state(), State::kWithdrawn);
}

TEST_F(AnnouncerTest, WhatWasNeverAnnouncedIsWithdrawnAtOnce) {
  ready = false;
  Start();
  time.Run();
  ASSERT_TRUE(Withdraw());
  EXPECT_EQ(etcd.calls("LeaseRevoke"), 0);
}

TEST_F(AnnouncerTest, AKeyThatVanishesIsPutAgain) {
  Start();
  ASSERT_TRUE(Announced());
  etcd.Delete(kKey);
  EXPECT_TRUE(Until([&] { return etcd.Get(kKey).has_value(); }));
  EXPECT_EQ(etcd.calls("LeaseGrant"), 1);
}

TEST_F(AnnouncerTest, ALeaseThatIsLostIsGrantedAgain) {
  Start();
  ASSERT_TRUE(Announced());
  etcd.ExpireLease(etcd.Leases()[0]);
  EXPECT_TRUE(Until([&] { return etcd.Get(kKey).has_value(); }));
  EXPECT_EQ(etcd.calls("LeaseGrant"), 2);
}

TEST_F(AnnouncerTest, LostDataAreAnnouncedAgain) {
  Start();
  ASSERT_TRUE(Announced());
  etcd.Stop();
  etcd.LoseData(8);
  etcd.Start();
  EXPECT_TRUE(Until([&] { return etcd.Get(kKey).has_value(); }));
}

// As at a restart: the process that ends must neither remove nor overwrite the key of the one that has begun.
TEST_F(AnnouncerTest, TheKeyOfAnotherProcessIsLeftAlone) {
  Start();
  ASSERT_TRUE(Announced());
  etcd.Put(kKey, "10.0.0.7:7070@3");
  const int rounds = etcd.calls("LeaseKeepAlive");
  ASSERT_TRUE(Until([&] { return etcd.calls("LeaseKeepAlive") >= rounds + 2; }));
  ASSERT_TRUE(Withdraw());
  EXPECT_EQ(etcd.Get(kKey), "10.0.0.7:7070@3");
}

TEST_F(AnnouncerTest, TheNextServerIsAskedWhenOneIsAway) {
  options.etcd.servers = {"127.0.0.1:1", etcd.address()};
  Start();
  EXPECT_TRUE(Announced());
}

// The servers are three members of one cluster; one hangs in the midst of a round, and the others answer. What is left
// of the shortest lease behind the pause before that round is enough.
TEST_F(AnnouncerTest, ALeaseOutlivesAMemberThatHangs) {
  options.etcd.servers = {etcd.address(), etcd.address(), etcd.address()};
  Start();
  ASSERT_TRUE(Announced());
  for (const std::string method : {"LeaseKeepAlive", "Range", "Put", "LeaseGrant"}) {
    const int calls = etcd.calls(method);
    etcd.IgnoreNext(method);
    if (method == "Put") etcd.Delete(kKey);
    if (method == "LeaseGrant") etcd.ExpireLease(etcd.Leases()[0]);
    ASSERT_TRUE(Until([&] { return etcd.calls(method) > calls; })) << method;
    const base::TimePoint hung = time.clock.Now();
    ASSERT_TRUE(Until([&] { return !announcer->error().empty(); })) << method;
    EXPECT_EQ(announcer->error(), etcd.address() + ": no answer within 400 ms") << method;
    ASSERT_TRUE(Announced());
    EXPECT_LT(time.clock.Now() - hung, options.lease - options.lease / Announcer::kRounds) << method;
  }
  EXPECT_EQ(etcd.calls("LeaseGrant"), 3) << "one for the start, two for the lease that was lost";
}

TEST_F(AnnouncerTest, AServerThatIsAwayAtTheEndHoldsNothingUp) {
  Start();
  ASSERT_TRUE(Announced());
  etcd.SetSilent(true);
  const base::TimePoint before = time.clock.Now();
  ASSERT_TRUE(Withdraw());
  EXPECT_LE(time.clock.Now() - before, Announcer::kWithdrawMax + milliseconds(500));
  etcd.SetSilent(false);
}

TEST_F(AnnouncerTest, ErrorsAreKnown) {
  etcd.FailNext("LeaseGrant", {grpc::StatusCode::RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded"});
  Start();
  std::string error;
  ASSERT_TRUE(Until([&] { return !(error = announcer->error()).empty(); }));
  EXPECT_EQ(error, etcd.address() + ": RESOURCE_EXHAUSTED: etcdserver: mvcc: database space exceeded");
  EXPECT_TRUE(Announced());
}

TEST_F(AnnouncerTest, NonsenseIsAnError) {
  etcd.AnswerNext("LeaseGrant", "\xff\xff");
  Start();
  ASSERT_TRUE(Until([&] { return !announcer->error().empty(); }));
  EXPECT_THAT(announcer->error(), HasSubstr("LeaseGrant is answered without a lease"));
  EXPECT_TRUE(Announced());
}

TEST_F(AnnouncerTest, ATokenThatHasExpiredIsRenewed) {
  integration::TempDir dir;
  etcd.RequireUser("sluice", "secret");
  options.etcd.user = "sluice";
  options.etcd.password_file = dir.Write("password", "secret");
  Start();
  ASSERT_TRUE(Announced());
  etcd.ExpireTokens();
  const int renewals = etcd.calls("LeaseKeepAlive");
  ASSERT_TRUE(Until([&] { return etcd.calls("LeaseKeepAlive") >= renewals + 3; }));
  EXPECT_EQ(etcd.calls("Authenticate"), 2);
  EXPECT_EQ(etcd.calls("LeaseGrant"), 1);
  EXPECT_TRUE(Withdraw());
  EXPECT_EQ(etcd.Get(kKey), std::nullopt);
}

}  // namespace
}  // namespace sluice::discovery
