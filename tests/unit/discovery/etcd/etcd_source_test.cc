// EtcdSource against a played server: every way in which a server fails, forgets, or comes back with other data.
#include "discovery/etcd/etcd_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "config/config.h"
#include "integration/support/temp_dir.h"
#include "support/socket_worker.h"
#include "unit/discovery/etcd/played_etcd.h"

namespace sluice::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::PlayedEtcd;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class EtcdSourceTest : public ::testing::Test {
 protected:
  EtcdSourceTest() { options.prefix = "/users/"; }
  ~EtcdSourceTest() override { time.runtime.Shutdown(); }

  void Follow() {
    if (options.servers.empty()) options.servers = {etcd.address()};
    time.runtime.SpawnPinOnStart(Run(*this));
  }
  static runtime::Task<void> Run(EtcdSourceTest& test) {
    Bell bell;
    EtcdSource source(test.options, &config::ParseEndpointValue, /*seed=*/3, bell);
    test.source = &source;
    test.bell = &bell;
    for (;;) {
      runtime::Task<Answer> next = source.Next(base::kNever);
      const Answer answer = co_await std::move(next);
      if (answer.index() == 0) continue;
      if (std::holds_alternative<Unchanged>(answer)) {
        ++test.confirmed;
        continue;
      }
      std::string text;
      if (const auto* error = std::get_if<std::string>(&answer)) text = "error: " + *error;
      if (const auto* list = std::get_if<List>(&answer)) {
        for (const auto& e : *list) text += (text.empty() ? "" : " ") + e.name + "=" + e.address.ToString();
        if (list->empty()) text = "empty";
        test.list_size = list->size();
      }
      test.heard = text;
      test.answers.push_back(std::move(text));
    }
  }
  // Time goes on as on the wall, `pace` times as fast: servers answer in real time.
  bool Until(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + seconds(20);
    for (auto last = std::chrono::steady_clock::now(); !done(); std::this_thread::yield()) {
      const auto now = std::chrono::steady_clock::now();
      if (now > until) return false;
      time.clock.Advance(pace * (now - last));
      last = now;
      time.Run();
    }
    return true;
  }
  void Ask() {
    const runtime::Worker::ScopedCurrentForTest current(time.worker);
    source->Ask();
    bell->Ring();
  }
  bool Hears(const std::string& wanted) {
    return Until([&] { return heard == wanted; });
  }
  // It may be over by now.
  bool HearsError(const std::string& wanted) {
    return Until([&] {
      return std::any_of(answers.begin(), answers.end(), [&](const std::string& answer) {
        return answer.find("error: ") == 0 && answer.find(wanted) != answer.npos;
      });
    });
  }
  PlayedEtcd etcd;
  EtcdOptions options;
  test::SocketWorker time;
  int pace = 1;
  EtcdSource* source = nullptr;
  Bell* bell = nullptr;
  std::string heard = "nothing";
  std::vector<std::string> answers;
  size_t list_size = 0;
  int confirmed = 0;
};

TEST_F(EtcdSourceTest, KeysBelowThePrefixAreTheListAndChangesAreSeen) {
  etcd.Put("/users/b", "10.0.0.2:1");
  etcd.Put("/users/a", "10.0.0.1:1");
  etcd.Put("/users", "no");
  etcd.Put("/users2/c", "no");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.2:1")) << heard;
  etcd.Put("/users/c", "10.0.0.3:1@2");
  ASSERT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.2:1 c=10.0.0.3:1")) << heard;
  etcd.Delete("/users/a");
  ASSERT_TRUE(Hears("b=10.0.0.2:1 c=10.0.0.3:1")) << heard;
  etcd.Put("/users/b", "10.0.0.9:1");
  ASSERT_TRUE(Hears("b=10.0.0.9:1 c=10.0.0.3:1")) << heard;
  EXPECT_EQ(etcd.calls("Range"), 1);
  EXPECT_TRUE(etcd.leader_required());
}

TEST_F(EtcdSourceTest, NoKeysAreAnEmptyList) {
  Follow();
  EXPECT_TRUE(Hears("empty")) << heard;
}

TEST_F(EtcdSourceTest, AListOfManyPagesIsOfOneRevision) {
  std::map<std::string, std::string> keys;
  for (int i = 0; i < 1700; ++i) keys["/users/e" + std::to_string(i)] = "10.0.0.1:1";
  etcd.PutAll(keys);
  etcd.BeforeNextPage([&] { etcd.Put("/users/late", "10.0.0.1:1"); });
  Follow();
  ASSERT_TRUE(Until([&] { return list_size == 1701; })) << list_size;
  EXPECT_EQ(etcd.calls("Range"), 4);
}

TEST_F(EtcdSourceTest, AListThatIsCompactedBetweenItsPagesIsReadAnew) {
  for (const char* key : {"/users/a", "/users/b", "/users/c"}) etcd.Put(key, "10.0.0.1:1");
  etcd.SetPage(2);
  etcd.BeforeNextPage([&] {
    etcd.Delete("/users/a");
    etcd.Compact();
  });
  Follow();
  EXPECT_TRUE(Hears("b=10.0.0.1:1 c=10.0.0.1:1")) << heard;
}

TEST_F(EtcdSourceTest, AWatchThatIsCompactedReadsTheListAnew) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Until([&] { return etcd.watches() == 1; }));
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  etcd.Compact(/*under_watches=*/true);
  etcd.Put("/users/b", "10.0.0.2:1");
  EXPECT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.2:1")) << heard;
  EXPECT_EQ(etcd.calls("Range"), 2);
  for (const std::string& answer : answers) EXPECT_THAT(answer, ::testing::Not(StartsWith("error"))) << answer;
}

TEST_F(EtcdSourceTest, FragmentsAreOneChange) {
  etcd.SetFragment(1);
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Until([&] { return etcd.watches() == 1; }));
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  etcd.PutAll({{"/users/b", "10.0.0.2:1"}, {"/users/c", "10.0.0.3:1"}, {"/users/d", "10.0.0.4:1"}});
  ASSERT_TRUE(Until([&] { return answers.size() == 2; }));
  EXPECT_EQ(heard, "a=10.0.0.1:1 b=10.0.0.2:1 c=10.0.0.3:1 d=10.0.0.4:1");
}

TEST_F(EtcdSourceTest, AWatchThatIsCancelledIsAnErrorAndBegunAnew) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Until([&] { return etcd.watches() == 1; }));
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  etcd.CancelWatches("etcdserver: for a test");
  ASSERT_TRUE(HearsError("the watch was cancelled: etcdserver: for a test")) << heard;
  EXPECT_TRUE(Hears("a=10.0.0.1:1")) << heard;
}

TEST_F(EtcdSourceTest, AServerThatEndsAndComesBackIsFollowedAgain) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  etcd.Stop();
  ASSERT_TRUE(HearsError(etcd.address() + ": UNAVAILABLE")) << heard;
  etcd.Put("/users/b", "10.0.0.2:1");
  etcd.Start();
  EXPECT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.2:1")) << heard;
}

TEST_F(EtcdSourceTest, TheNextServerIsAskedWhenOneIsAway) {
  PlayedEtcd other;
  etcd.Put("/users/a", "10.0.0.1:1");
  other.Put("/users/b", "10.0.0.2:1");
  options.servers = {"127.0.0.1:1", etcd.address(), other.address()};
  Follow();
  ASSERT_TRUE(Until([&] { return list_size == 1; })) << heard;
  for (int i = 0; i < 2; ++i) {
    PlayedEtcd& now = heard == "a=10.0.0.1:1" ? etcd : other;
    now.Stop();
    ASSERT_TRUE(Hears(&now == &etcd ? "b=10.0.0.2:1" : "a=10.0.0.1:1")) << heard;
    now.Start();
  }
}

// The keeper holds an empty list for empty_after; after that it must not get a second one.
TEST_F(EtcdSourceTest, LostDataAreAnEmptyListOnceAndThenAnError) {
  etcd.Put("/users/a", "10.0.0.1:1");
  etcd.Put("/users/b", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.1:1")) << heard;
  etcd.Stop();
  etcd.LoseData(/*new_cluster=*/7);  // with the same flags it has the same id
  etcd.Start();
  ASSERT_TRUE(Hears("empty")) << heard;
  for (int i = 0; i < 3; ++i) {
    answers.clear();
    Ask();
    ASSERT_TRUE(Until([&] { return !answers.empty(); }));
    EXPECT_THAT(heard, HasSubstr("error: etcd has lost its data: its revision went back, and there is no key below "
                                 "/users/; the last list stays until there is one"));
  }
  etcd.Put("/users/c", "10.0.0.3:1");
  ASSERT_TRUE(Hears("c=10.0.0.3:1")) << heard;
  etcd.Delete("/users/c");
  EXPECT_TRUE(Hears("empty")) << "this one was deleted: " << heard;
}

// A server that ends may refuse the watch behind the list; gRPC sends it again, to the one that is there next.
TEST_F(EtcdSourceTest, AWatchThatBeginsWhereTheDataAreLostIsNoticed) {
  etcd.Put("/users/a", "10.0.0.1:1");
  etcd.Put("/users/b", "10.0.0.1:1");
  etcd.BeforeNextWatch([&] { etcd.LoseData(/*new_cluster=*/7); });
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.1:1")) << heard;
  ASSERT_TRUE(Hears("empty")) << heard;
  EXPECT_EQ(etcd.calls("Range"), 2);
  etcd.Put("/users/c", "10.0.0.3:1");
  EXPECT_TRUE(Hears("c=10.0.0.3:1")) << heard;
}

TEST_F(EtcdSourceTest, AnotherClusterWithoutKeysIsLostDataToo) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  etcd.Stop();
  etcd.LoseData(/*new_cluster=*/8);
  for (int i = 0; i < 10; ++i) etcd.Put("/other", "x");
  etcd.Start();
  ASSERT_TRUE(Hears("empty")) << heard;
  Ask();
  EXPECT_TRUE(HearsError("etcd has lost its data: another cluster answers")) << heard;
}

TEST_F(EtcdSourceTest, ASilentServerIsNoticedAndLeftForAnother) {
  PlayedEtcd other;
  etcd.Put("/users/a", "10.0.0.1:1");
  options.servers = {etcd.address()};
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  etcd.SetSilent(true);
  const base::TimePoint before = time.clock.Now();
  ASSERT_TRUE(HearsError("says nothing")) << heard;
  EXPECT_LE(time.clock.Now() - before, EtcdSession::kHeartbeat + EtcdSession::kPatience + seconds(1));
  etcd.Put("/users/b", "10.0.0.2:1");
  etcd.SetSilent(false);
  EXPECT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.2:1")) << heard;
}

TEST_F(EtcdSourceTest, AServerThatHasNothingToSayIsNotLeft) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  // Heartbeats are asked for and answered as time goes on.
  ASSERT_TRUE(Until([&] { return etcd.calls("Watch") >= 4; }));
  EXPECT_EQ(answers.size(), 1u) << answers.back();
  EXPECT_EQ(etcd.calls("Range"), 1);
}

TEST_F(EtcdSourceTest, AListIsConfirmedWhileTheServerIsWell) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  pace = 5;
  const base::TimePoint before = time.clock.Now();
  ASSERT_TRUE(Until([&] { return confirmed == 2; }));
  EXPECT_GE(time.clock.Now() - before, 2 * EtcdSource::kConfirm - seconds(1));
  etcd.Stop();
  ASSERT_TRUE(HearsError("UNAVAILABLE")) << heard;
  EXPECT_EQ(confirmed, 2);
}

TEST_F(EtcdSourceTest, AskReadsTheListAgain) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  Ask();
  ASSERT_TRUE(Until([&] { return answers.size() == 2; }));
  EXPECT_EQ(heard, "a=10.0.0.1:1");
  EXPECT_EQ(etcd.calls("Range"), 2);
}

TEST_F(EtcdSourceTest, AUserHasATokenThatIsRenewed) {
  integration::TempDir dir;
  etcd.RequireUser("sluice", "secret");
  etcd.Put("/users/a", "10.0.0.1:1");
  options.user = "sluice";
  options.password_file = dir.Write("password", "secret\n");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  etcd.ExpireTokens();
  etcd.Compact(/*under_watches=*/true);
  etcd.Put("/users/b", "10.0.0.2:1");
  EXPECT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.2:1")) << heard;
  EXPECT_EQ(etcd.calls("Authenticate"), 2);
  for (const std::string& answer : answers) EXPECT_THAT(answer, ::testing::Not(StartsWith("error"))) << answer;
}

TEST_F(EtcdSourceTest, AWrongPasswordIsAnErrorThatIsAskedRarely) {
  integration::TempDir dir;
  etcd.RequireUser("sluice", "secret");
  etcd.Put("/users/a", "10.0.0.1:1");
  options.user = "sluice";
  options.password_file = dir.Write("password", "guess");
  Follow();
  ASSERT_TRUE(HearsError("authentication failed, invalid user ID or password")) << heard;
  pace = 5;
  const base::TimePoint before = time.clock.Now();
  const int calls = etcd.calls("Authenticate");
  ASSERT_TRUE(Until([&] { return time.clock.Now() - before > seconds(10); }));
  EXPECT_LE(etcd.calls("Authenticate") - calls, 6);
  dir.Write("password", "secret");
  EXPECT_TRUE(Hears("a=10.0.0.1:1")) << heard;
}

TEST_F(EtcdSourceTest, AFileThatCannotBeReadIsNamed) {
  options.user = "sluice";
  options.password_file = "/nowhere/password";
  Follow();
  EXPECT_TRUE(HearsError("/nowhere/password: cannot be read: No such file or directory")) << heard;
  EXPECT_EQ(etcd.calls("Range"), 0);
}

TEST_F(EtcdSourceTest, OneBadValueRefusesTheListUntilItIsGone) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  etcd.Put("/users/b", "10.0.0.2");
  ASSERT_TRUE(HearsError("/users/b: ")) << heard;
  etcd.Put("/users/b", "10.0.0.2:1");
  EXPECT_TRUE(Hears("a=10.0.0.1:1 b=10.0.0.2:1")) << heard;
}

TEST_F(EtcdSourceTest, TooManyKeysAreAnErrorUntilThereAreFewer) {
  std::map<std::string, std::string> keys;
  for (size_t i = 0; i <= EtcdList::kKeysMax; ++i) keys["/users/e" + std::to_string(i)] = "10.0.0.1:1";
  etcd.PutAll(keys);
  Follow();
  ASSERT_TRUE(HearsError("more than 10000 keys")) << heard.substr(0, 200);
  pace = 5;
  etcd.Delete("/users/e7");
  EXPECT_TRUE(Until([&] { return list_size == EtcdList::kKeysMax; })) << list_size;
}

TEST_F(EtcdSourceTest, NonsenseIsAnError) {
  etcd.Put("/users/a", "10.0.0.1:1");
  etcd.AnswerNext("Range", "\xff\xff\xff");
  Follow();
  EXPECT_TRUE(HearsError("Range is answered by what is no RangeResponse")) << heard;
  EXPECT_TRUE(Hears("a=10.0.0.1:1")) << heard;
}

TEST_F(EtcdSourceTest, NonsenseOfAWatchIsAnError) {
  etcd.Put("/users/a", "10.0.0.1:1");
  etcd.AnswerNext("Watch", "\xff\xff\xff");
  Follow();
  EXPECT_TRUE(HearsError("Watch is answered by what is no WatchResponse")) << heard;
  EXPECT_TRUE(Hears("a=10.0.0.1:1")) << heard;
}

TEST_F(EtcdSourceTest, ChangesThatComeFastAreMerged) {
  etcd.Put("/users/a", "10.0.0.1:1");
  Follow();
  ASSERT_TRUE(Until([&] { return etcd.watches() == 1; }));
  ASSERT_TRUE(Hears("a=10.0.0.1:1")) << heard;
  const base::TimePoint before = time.clock.Now();
  for (int i = 1; i <= 200; ++i) {
    etcd.Put("/users/a", "10.0.0.1:" + std::to_string(i));
    time.clock.Advance(milliseconds(2));
    time.Run();
  }
  ASSERT_TRUE(Hears("a=10.0.0.1:200")) << heard;
  const auto passed = time.clock.Now() - before;
  EXPECT_LE(answers.size(), static_cast<size_t>(passed / EtcdSource::kMerge) + 3);
}

}  // namespace
}  // namespace sluice::discovery
