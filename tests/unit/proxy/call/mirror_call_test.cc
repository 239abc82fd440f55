// Calls that are made a second time at another cluster: what that one sees, what is made of its answers, and that the
// client's call never hears of it.
#include "proxy/call/mirror_call.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "support/captured_log.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::Message;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

const std::string kPrimary = "10.0.0.1:1", kNext = "10.0.1.1:1", kNextToo = "10.0.1.2:1";

class CountsCalls final : public CallObserver {
 public:
  void OnCallEnd(const CallRecord&, uint32_t) override { ++calls; }
  size_t calls = 0;
};

class MirrorCallTest : public test::ProxyFixture {
 public:
  MirrorCallTest() {
    observers = {told};
    other.emplace();
    other->name = "other";
    other->policy = upstream::Policy::kRoundRobin;
    other_addresses = {kNext};
    routes[0].mirror.cluster = "other";
    routes[0].mirror.compare = true;
  }
  void Ask(FramePeer& client, uint32_t id, const Fields& more = {}, const std::string& text = "q") {
    client.Send(Headers(id, Block(h2::With(GrpcRequest(), more))) + Data(id, Message(text), h2::kEndStream));
    Run();
  }
  void Answer(const std::string& host, uint32_t id, const std::string& text, const std::string& status = "0") {
    Up(host).Send(Headers(id, Block(GrpcResponse())) + Data(id, Message(text)) +
                  Headers(id, Block(GrpcTrailers(status)), kLast));
    Run();
  }
  uint64_t Count(MirrorResult result) {
    const std::string name(kMirrorResults[static_cast<size_t>(result)]);
    return registry.AddCounter("mirrored_calls_total", "Mirrored calls.", {{"result", name}})->Value();
  }
  const test::Heard& Mirrored(uint32_t id = 1) { return Up(kNext).streams[id]; }
  bool AnyMirrored() { return Connected(kNext) && Up(kNext).streams.size() > Up(kNext).streams.count(0); }

  std::shared_ptr<CountsCalls> told = std::make_shared<CountsCalls>();
};

TEST_F(MirrorCallTest, TheOtherClusterSeesTheSameCallWithAMark) {
  routes[0].rewrite.authority = "users.internal";
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1, {{"x-a", "1"}, {"sluice-mirrored", "forged"}, {"grpc-timeout", "5S"}});
  Fields primary = Up(kPrimary).streams[1].headers.at(0), mirrored = Mirrored().headers.at(0);
  EXPECT_THAT(primary, Not(Contains(Pair("sluice-mirrored", testing::_))));
  EXPECT_THAT(mirrored, Contains(Pair("sluice-mirrored", "1")).Times(1));
  std::erase(mirrored, std::pair<std::string, std::string>("sluice-mirrored", "1"));
  EXPECT_THAT(mirrored, testing::UnorderedElementsAreArray(primary));
  EXPECT_EQ(Mirrored().data, Message("q"));
  EXPECT_TRUE(Mirrored().end);
}

TEST_F(MirrorCallTest, EqualAnswersAreEqual) {
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Answer(kPrimary, 1, "a");
  EXPECT_EQ(client.streams[1].data, Message("a")) << "without a word of the other";
  EXPECT_EQ(told->calls, 1u);
  EXPECT_EQ(Count(MirrorResult::kEqual), 0u);
  Answer(kNext, 1, "a");
  EXPECT_EQ(Count(MirrorResult::kEqual), 1u);
  Ask(client, 3);
  Answer(kNext, 3, "b");
  EXPECT_TRUE(client.streams[3].headers.empty());
  Answer(kPrimary, 3, "b");
  EXPECT_EQ(Count(MirrorResult::kEqual), 2u);
  EXPECT_EQ(told->calls, 2u) << "doubles are no calls";
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
}

TEST_F(MirrorCallTest, APieceMayBeCutAnywhere) {
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  const std::string body = Message("one") + Message("two");
  Up(kNext).Send(Headers(1, Block(GrpcResponse())));
  for (const char c : body) {
    Up(kNext).Send(Data(1, std::string(1, c)));
    Run();
  }
  Up(kNext).Send(Headers(1, Block(GrpcTrailers()), kLast));
  Up(kPrimary).Send(Headers(1, Block(GrpcResponse())) + Data(1, body) + Headers(1, Block(GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(Count(MirrorResult::kEqual), 1u);
}

TEST_F(MirrorCallTest, DifferentAnswersAreCountedAndLoggedWithTheCallsId) {
  test::CapturedLog log;
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Answer(kPrimary, 1, "a");
  Answer(kNext, 1, "a", "5");
  EXPECT_EQ(Count(MirrorResult::kStatusDiffers), 1u);
  Ask(client, 3);
  Answer(kPrimary, 3, "a");
  Answer(kNext, 3, "b");
  EXPECT_EQ(Count(MirrorResult::kMessageDiffers), 1u);
  const std::string said = log.Take();
  EXPECT_THAT(said, HasSubstr("mirror of route r: call "));
  EXPECT_THAT(said, HasSubstr("c answered OK with 6 bytes, other NOT_FOUND with 6 bytes"));
  Ask(client, 5);
  Answer(kPrimary, 5, "a");
  Up(kNext).Send(Headers(5, Block(h2::With(GrpcResponse(), GrpcTrailers("0"))), kLast));
  Run();
  EXPECT_EQ(Count(MirrorResult::kMessageDiffers), 2u) << "no message is another one";
}

TEST_F(MirrorCallTest, WithoutComparisonTheAnswerIsCountedAlone) {
  routes[0].mirror.compare = false;
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Answer(kPrimary, 1, "a");
  Answer(kNext, 1, "other", "5");
  EXPECT_EQ(Count(MirrorResult::kAnswered), 1u);
}

TEST_F(MirrorCallTest, AClusterThatIsDownTouchesNoCall) {
  Start({kPrimary});
  net.host(kNext).mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 7; id += 2) {
    Ask(client, id);
    Answer(kPrimary, id, "a");
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "0");
  }
  EXPECT_EQ(Count(MirrorResult::kIncomplete), 1u) << "one has found out";
  EXPECT_EQ(Count(MirrorResult::kNoEndpoint), 2u);
}

TEST_F(MirrorCallTest, ItIsNotTriedAgain) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  other_addresses = {kNext, kNextToo};
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  const std::string host = Holders({kNext, kNextToo}).at(0);
  Up(host).Send(h2::RstStream(1, 7));
  Run();
  EXPECT_EQ(Holders({kNext, kNextToo}).size(), 1u);
  Answer(kPrimary, 1, "a");
  EXPECT_EQ(Count(MirrorResult::kIncomplete), 1u);
}

TEST_F(MirrorCallTest, ASlowOneEndsByItsTimeAndByTheCallsDeadline) {
  routes[0].mirror.timeout = seconds(3);
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Ask(client, 3, {{"grpc-timeout", "1S"}});
  EXPECT_EQ(Mirrored(1).Value("grpc-timeout"), "3000000u");
  EXPECT_EQ(Mirrored(3).Value("grpc-timeout"), "1000000u");
  Answer(kPrimary, 1, "a");
  Answer(kPrimary, 3, "a");
  Advance(seconds(1));
  EXPECT_EQ(Mirrored(3).reset, 8u);
  EXPECT_FALSE(Mirrored(1).reset);
  Advance(seconds(2));
  EXPECT_EQ(Mirrored(1).reset, 8u);
  EXPECT_EQ(Count(MirrorResult::kIncomplete), 2u);
}

TEST_F(MirrorCallTest, ThatItsTimeIsOverIsNoAnswerAlsoFromTheEndpoint) {
  routes[0].mirror.timeout = seconds(1);
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Answer(kPrimary, 1, "a");
  Advance(seconds(1) - milliseconds(1));
  Up(kNext).Send(Headers(1, Block(h2::With(GrpcResponse(), GrpcTrailers("4"))), kLast));
  Run();
  EXPECT_EQ(Count(MirrorResult::kIncomplete), 1u);
}

TEST_F(MirrorCallTest, OneThatWaitsForItsClientsAnswerWaitsNoLongerThanItsTime) {
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Answer(kNext, 1, "a");
  EXPECT_EQ(mirrored_calls->load(), 1u);
  Advance(seconds(10));
  EXPECT_EQ(mirrored_calls->load(), 0u);
  Answer(kPrimary, 1, "a");
  EXPECT_EQ(Count(MirrorResult::kIncomplete), 1u);
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
}

TEST_F(MirrorCallTest, AnErrorOfTheProxysOwnIsNothingToCompareWith) {
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Up(kPrimary).Send(h2::RstStream(1, 2));
  Run();
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "upstream_reset");
  EXPECT_EQ(Mirrored().reset, 8u) << "there is no use for it any more";
  EXPECT_EQ(Count(MirrorResult::kIncomplete), 1u);
}

TEST_F(MirrorCallTest, WhatTheClientCancelsIsCancelledThere) {
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(Mirrored().reset, 8u);
  EXPECT_EQ(Count(MirrorResult::kIncomplete), 1u);
}

TEST_F(MirrorCallTest, NoMoreThanCallsMaxAreUnderWay) {
  routes[0].mirror.calls_max = 2;
  Start({kPrimary});
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 9; id += 2) Ask(client, id);
  EXPECT_EQ(Count(MirrorResult::kBusy), 2u);
  for (uint32_t id = 1; id < 9; id += 2) Answer(kPrimary, id, "a");
  Answer(kNext, 1, "a");
  Ask(client, 9);
  EXPECT_EQ(Count(MirrorResult::kBusy), 2u);
}

TEST_F(MirrorCallTest, LimitsOfItsClusterHoldAndNothingWaits) {
  other->concurrency.max = 1;
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Ask(client, 3);
  EXPECT_EQ(other_state().limits->concurrency->in_use(), 1u);
  EXPECT_EQ(other_state().limits->concurrency->waiting(), 0u);
  EXPECT_EQ(Count(MirrorResult::kLimited), 1u);
  Answer(kPrimary, 1, "a");
  Answer(kPrimary, 3, "a");
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "0");
  Answer(kNext, 1, "a");
  EXPECT_EQ(other_state().limits->concurrency->in_use(), 0u);
}

TEST_F(MirrorCallTest, ItGoesByTheSameKeyOnItsOwnRing) {
  routes[0].hash_by.kind = HashBy::Kind::kMetadata;
  routes[0].hash_by.metadata = "x-key";
  other->policy = upstream::Policy::kRingHash;
  other_addresses = {kNext, kNextToo};
  Start({kPrimary});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (int key = 0; key < 8; ++key) {
    std::string host;
    for (int again = 0; again < 3; ++again, id += 2) {
      std::map<std::string, size_t> before;
      for (const std::string& next : {kNext, kNextToo}) before[next] = Connected(next) ? Up(next).streams.size() : 0;
      Ask(client, id, {{"x-key", std::to_string(key)}});
      for (const std::string& next : {kNext, kNextToo}) {
        if (!Connected(next) || Up(next).streams.size() == before[next]) continue;
        EXPECT_TRUE(host.empty() || host == next) << key;
        host = next;
      }
    }
  }
  EXPECT_TRUE(Connected(kNext) && Connected(kNextToo)) << "not all keys have one";
}

TEST_F(MirrorCallTest, APercentageIsOfTheCallsByChance) {
  constexpr uint64_t kSeed = 20261125;
  routes[0].mirror.percent = 25;
  Start({kPrimary});
  worker->worker().random() = base::Random(kSeed);
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 401; id += 2) {
    Ask(client, id);
    Answer(kPrimary, id, "a");
    client.Send(h2::RstStream(id, 8));
  }
  EXPECT_NEAR(static_cast<double>(Up(kNext).streams.size()), 50, 25) << "seed " << kSeed;
  routes[0].mirror.percent = 0;
  SetEndpoints({kPrimary});
  const size_t before = Up(kNext).streams.size();
  Ask(client, 401);
  EXPECT_EQ(Up(kNext).streams.size(), before);
}

TEST_F(MirrorCallTest, AStreamGoesOnAsItComes) {
  Start({kPrimary});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, Message("one")));
  Run();
  EXPECT_EQ(Mirrored().data, Message("one"));
  client.Send(Data(1, Message("two")));
  Run();
  EXPECT_EQ(Mirrored().data, Message("one") + Message("two"));
  client.Send(Headers(1, Block({{"x-end", "e"}}), kLast));
  Run();
  EXPECT_EQ(Mirrored().Value("x-end"), "e");
  EXPECT_TRUE(Mirrored().end);
  Answer(kNext, 1, "a");
  Answer(kPrimary, 1, "a");
  EXPECT_EQ(Count(MirrorResult::kEqual), 1u);
}

// The client's window follows what the primary takes alone.
TEST_F(MirrorCallTest, WhatTheMirrorDoesNotTakeIsNotWaitedFor) {
  routes[0].mirror.bytes_max = 1000;
  routes[0].retry.attempts_max = 1;
  net.host(kNext).settings = {{4, 100}};  // SETTINGS_INITIAL_WINDOW_SIZE
  Start({kPrimary});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  Up(kNext).credit = false;
  for (int i = 0; i < 10; ++i) {
    client.Send(Data(1, std::string(100, 'd')));
    Run();
  }
  EXPECT_EQ(Up(kPrimary).streams[1].data.size(), 1000u);
  EXPECT_EQ(Mirrored().data.size(), 100u);
  EXPECT_FALSE(Mirrored().reset);
  for (int i = 0; i < 10; ++i) {
    client.Send(Data(1, std::string(100, 'd')));
    Run();
  }
  EXPECT_EQ(Mirrored().reset, 8u);
  EXPECT_EQ(Count(MirrorResult::kFull), 1u);
  EXPECT_EQ(Up(kPrimary).streams[1].data.size(), 2000u);
  client.Send(Data(1, "", h2::kEndStream));
  Run();
  Answer(kPrimary, 1, "a");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
}

TEST_F(MirrorCallTest, ARequestThatIsTooLongAtOnceIsNotMirrored) {
  routes[0].mirror.bytes_max = 10;
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1, {}, "0123456789");
  EXPECT_FALSE(AnyMirrored());
  EXPECT_EQ(Count(MirrorResult::kFull), 1u);
}

// What is mirrored is what goes to an endpoint.
TEST_F(MirrorCallTest, AFetchIsMirroredOnceAndAHitIsNot) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Ask(client, 3);
  EXPECT_EQ(Up(kNext).streams.size() - Up(kNext).streams.count(0), 1u);
  Answer(kPrimary, 1, "a");
  Answer(kNext, 1, "a");
  Ask(client, 5);
  for (const uint32_t id : {1, 3, 5}) EXPECT_EQ(client.streams[id].data, Message("a")) << id;
  EXPECT_EQ(Up(kNext).streams.size() - Up(kNext).streams.count(0), 1u);
  EXPECT_EQ(Count(MirrorResult::kEqual), 1u);
}

TEST_F(MirrorCallTest, ASecondAttemptIsNotMirroredAgain) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({kPrimary, "10.0.0.2:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  const std::string first = Holders({kPrimary, "10.0.0.2:1"}).at(0);
  const std::string second = first == kPrimary ? "10.0.0.2:1" : kPrimary;
  Up(first).Send(h2::RstStream(1, 2));
  Run();
  Answer(second, 1, "a");
  Answer(kNext, 1, "a");
  EXPECT_EQ(Up(kNext).streams.size() - Up(kNext).streams.count(0), 1u);
  EXPECT_EQ(Count(MirrorResult::kEqual), 1u) << "the answer that the client has got is compared";
}

TEST_F(MirrorCallTest, AStopEndsIt) {
  Start({kPrimary});
  FramePeer& client = Client();
  Ask(client, 1);
  Answer(kPrimary, 1, "a");
  EXPECT_EQ(mirrored_calls->load(), 1u);
  worker->EndCalls();
  Run();
  EXPECT_EQ(mirrored_calls->load(), 0u);
  EXPECT_EQ(Count(MirrorResult::kIncomplete), 1u);
}

}  // namespace
}  // namespace sluice::proxy
