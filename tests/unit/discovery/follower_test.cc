// The follower's task, with a source and a sink that the test plays.
#include "discovery/follower.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/manual_worker.h"

namespace sluice::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = PutResult::Kind;
using Strings = std::vector<std::string>;

List Hosts(const std::vector<std::string>& hosts) {
  List list;
  for (const std::string& host : hosts) {
    list.emplace_back();
    list.back().name = host;
    list.back().address = *net::Address::Parse(host + ":1");
  }
  Sort(list);
  return list;
}

// What the test has the source say.
struct Script {
  std::deque<Answer> answers;
  Bell* bell = nullptr;  // null: there is no source
  int asked = 0, hurried = 0, made = 0;

  void Say(Answer answer) {
    answers.push_back(std::move(answer));
    if (bell != nullptr) bell->Ring();
  }
  // As Say, instead of what has not been heard.
  void Replace(Answer answer) {
    answers.clear();
    Say(std::move(answer));
  }
};

class PlayedSource final : public Source {
 public:
  PlayedSource(Script& script, Bell& bell) : script_(script) { script_.bell = &bell; }
  ~PlayedSource() override { script_.bell = nullptr; }
  runtime::Task<Answer> Next(base::TimePoint until) override {
    if (script_.answers.empty() && runtime::Worker::Current()->now() < until) co_await script_.bell->Wait(until);
    if (script_.answers.empty()) co_return Answer();
    Answer answer = std::move(script_.answers.front());
    script_.answers.pop_front();
    ++script_.made;
    co_return answer;
  }
  void Ask() override { ++script_.asked; }
  void Hurry() override { ++script_.hurried; }

 private:
  Script& script_;
};

struct PlayedSink final : ListSink {
  PutResult Put(const std::string& cluster, const DiscoveryOptions& source, const List& list,
                double moved_max) override {
    std::lock_guard lock(mutex);
    std::string text = cluster + " " + source.Name() + ":";
    for (const auto& endpoint : list) text += " " + endpoint.name;
    if (moved_max < 1) text += " <=" + std::to_string(moved_max).substr(0, 3);
    puts.push_back(text);
    return result;
  }
  Strings Take() {
    std::lock_guard lock(mutex);
    return std::exchange(puts, {});
  }
  void Answer(PutResult next) {
    std::lock_guard lock(mutex);
    result = std::move(next);
  }
  std::mutex mutex;
  PutResult result;
  Strings puts;
};

class FollowerTest : public ::testing::Test {
 protected:
  FollowerTest() {
    options.kind = SourceKind::kFile;
    options.file.path = "f";
  }
  ~FollowerTest() override { time.runtime.Shutdown(); }
  void Start() {
    follower = std::make_shared<Follower>(
        "c", options, nullptr, [this](Bell& bell) { return std::make_unique<PlayedSource>(script, bell); }, sink, puts,
        [this](Update update) { updates.push_back(std::string(ToString(update))); });
    follower->Start(time.runtime);
    time.Run();
  }
  // Until helper threads have put a list, and the task has heard of it.
  Strings Put() {
    Strings puts;
    for (const auto until = std::chrono::steady_clock::now() + seconds(10);
         puts.empty() && std::chrono::steady_clock::now() < until; std::this_thread::yield()) {
      time.Run();
      puts = sink.Take();
    }
    // The answer was published when the list was due, or not yet.
    for (const auto until = std::chrono::steady_clock::now() + seconds(10);
         updates.size() == counted && std::chrono::steady_clock::now() < until; std::this_thread::yield())
      time.Run();
    counted = updates.size();
    time.Run();
    return puts;
  }
  void Advance(base::Nanos by) {
    time.clock.Advance(by);
    time.Run();
  }
  DiscoveryView View() { return follower->Describe(time.clock.Now()); }
  KeeperState State() { return View().state; }

  DiscoveryOptions options;
  Script script;
  PlayedSink sink;
  std::shared_ptr<sync::Semaphore> puts = std::make_shared<sync::Semaphore>(1);
  Strings updates;
  size_t counted = 0;  // of them
  test::ManualWorker time;
  std::shared_ptr<Follower> follower;
};

TEST_F(FollowerTest, AListIsPutInForceAndShown) {
  Start();
  EXPECT_EQ(State(), KeeperState::kWaiting);
  EXPECT_FALSE(follower->had_list());
  script.Say(Hosts({"b", "a"}));
  EXPECT_EQ(Put(), (Strings{"c file f: a b"}));
  EXPECT_TRUE(follower->had_list());
  Advance(seconds(3));
  const DiscoveryView view = View();
  EXPECT_EQ(view.source, "file f");
  EXPECT_EQ(view.state, KeeperState::kCurrent);
  EXPECT_EQ(view.answered_ago, seconds(3));
  EXPECT_EQ(view.changed_ago, seconds(3));
  EXPECT_EQ(view.error, "");
  EXPECT_EQ(updates, (Strings{"applied"}));
}

// To read a long file takes longer than to put its list in force.
TEST_F(FollowerTest, ASourceMakesNoListThatCannotBePutInForceYet) {
  Start();
  script.Say(Hosts({"a"}));
  Put();
  const int made = script.made;
  for (int i = 0; i < 7; ++i) {
    script.Replace(Hosts({"a", "b" + std::to_string(i)}));
    Advance(milliseconds(7));
  }
  EXPECT_EQ(script.made, made);
  EXPECT_EQ(sink.Take(), Strings());
  Advance(milliseconds(1));
  EXPECT_EQ(Put(), (Strings{"c file f: a b6 <=0.5"}));
  EXPECT_EQ(script.made, made + 1);
}

TEST_F(FollowerTest, AnErrorIsShownAndCountedAndChangesNothing) {
  Start();
  script.Say(Hosts({"a"}));
  Put();
  script.Say(std::string("away"));
  Advance(seconds(1));
  EXPECT_EQ(View().error, "away");
  EXPECT_EQ(State(), KeeperState::kCurrent);
  EXPECT_EQ(sink.Take(), Strings());
  EXPECT_EQ(updates, (Strings{"applied", "error"}));
}

TEST_F(FollowerTest, AListThatIsConfirmedIsYoungAgain) {
  Start();
  script.Say(Hosts({"a"}));
  Put();
  Advance(seconds(5));
  script.Say(Unchanged());
  time.Run();
  Advance(seconds(2));
  EXPECT_EQ(View().answered_ago, seconds(2));
  EXPECT_EQ(View().changed_ago, seconds(7));
  EXPECT_EQ(sink.Take(), Strings());
  EXPECT_EQ(updates, (Strings{"applied"}));
}

TEST_F(FollowerTest, AHeldAnswerIsAskedForAgainWhenItMayBeBelieved) {
  Start();
  script.Say(Hosts({"a"}));
  Put();
  Advance(ListKeeper::kMerge);
  script.Say(List());
  Advance(milliseconds(1));
  EXPECT_EQ(State(), KeeperState::kHeld);
  Advance(seconds(30) - milliseconds(2));
  EXPECT_EQ(script.asked, 0);
  Advance(milliseconds(10));
  EXPECT_EQ(script.asked, 1);
  Advance(seconds(10));
  EXPECT_EQ(script.asked, 1) << "it waits for the answer";
  script.Say(List());
  EXPECT_EQ(Put(), (Strings{"c file f:"}));
}

TEST_F(FollowerTest, AListThatMovesTooMuchIsAskedForAgain) {
  Start();
  script.Say(Hosts({"a"}));
  Put();
  Advance(seconds(1));
  sink.Answer({Kind::kMovesTooMuch, 1, {}});
  script.Say(Hosts({"b"}));
  EXPECT_EQ(Put(), (Strings{"c file f: b <=0.5"}));
  EXPECT_EQ(State(), KeeperState::kUnconfirmed);
  sink.Answer({});
  Advance(ListKeeper::kConfirm);
  EXPECT_EQ(script.asked, 1);
  script.Say(Hosts({"b"}));
  EXPECT_EQ(Put(), (Strings{"c file f: b"}));
  EXPECT_EQ(State(), KeeperState::kCurrent);
  EXPECT_EQ(updates, (Strings{"applied", "unconfirmed", "applied"}));
}

TEST_F(FollowerTest, AListThatIsPutOffIsPutAgain) {
  Start();
  sink.Answer({Kind::kLater, 0, "busy"});
  script.Say(Hosts({"a"}));
  for (const auto until = std::chrono::steady_clock::now() + seconds(10);
       View().error.empty() && std::chrono::steady_clock::now() < until; std::this_thread::yield())
    time.Run();
  EXPECT_EQ(View().error, "busy");
  EXPECT_EQ(sink.Take().size(), 1u);
  sink.Answer({});
  time.clock.Advance(ListKeeper::kConfirm);
  EXPECT_EQ(Put(), (Strings{"c file f: a"}));
  EXPECT_EQ(State(), KeeperState::kCurrent);
}

TEST_F(FollowerTest, AfterAResetTheSourcesListIsPut) {
  Start();
  sink.Answer({Kind::kOverridden, 0, {}});
  script.Say(Hosts({"a"}));
  Put();
  EXPECT_EQ(State(), KeeperState::kOverridden);
  sink.Answer({});
  Advance(seconds(1));
  follower->Again();
  EXPECT_EQ(Put(), (Strings{"c file f: a"}));
  EXPECT_EQ(State(), KeeperState::kCurrent);
}

TEST_F(FollowerTest, TheSourceIsHurriedAtMostOnceASecond) {
  Start();
  for (int i = 0; i < 5; ++i) {
    follower->Hurry();
    time.Run();
  }
  EXPECT_EQ(script.hurried, 1);
  Advance(Follower::kHurryPeriod);
  EXPECT_EQ(script.hurried, 2) << "the second wish is not lost";
  Advance(seconds(10));
  EXPECT_EQ(script.hurried, 2);
}

TEST_F(FollowerTest, StoppedItEndsAndItsSourceWithIt) {
  Start();
  ASSERT_NE(script.bell, nullptr);
  follower->Stop();
  time.Run();
  EXPECT_EQ(script.bell, nullptr);
  EXPECT_EQ(time.runtime.LiveTasks(), 0u);
  follower->Hurry();
  follower->Again();
  time.Run();
}

TEST_F(FollowerTest, AListWaitsForItsTurnToBePut) {
  std::optional<sync::Permit> other = puts->TryAcquire(1);
  Start();
  script.Say(Hosts({"a"}));
  time.Run();
  EXPECT_EQ(State(), KeeperState::kWaiting) << "not even begun";
  EXPECT_EQ(sink.Take(), Strings());
  other.reset();
  EXPECT_EQ(Put(), (Strings{"c file f: a"}));
}

TEST_F(FollowerTest, TheEndOfTheRuntimeEndsItsWaitForItsTurn) {
  std::optional<sync::Permit> other = puts->TryAcquire(1);
  Start();
  script.Say(Hosts({"a"}));
  time.Run();
  time.runtime.Shutdown();
  EXPECT_EQ(script.bell, nullptr);
}

TEST_F(FollowerTest, TheEndOfTheRuntimeEndsIt) {
  Start();
  time.runtime.Shutdown();
  EXPECT_EQ(script.bell, nullptr);
  follower->Stop();
}

}  // namespace
}  // namespace sluice::discovery
