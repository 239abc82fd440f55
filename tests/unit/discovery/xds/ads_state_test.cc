// The client's end of an ADS stream, told messages and the time by hand.
#include "discovery/xds/ads_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "support/captured_log.h"
#include "support/xds_messages.h"

namespace sluice::discovery {
namespace {

using std::chrono::seconds;
using test::Any;
using test::Assignment;
using test::EdsCluster;
using test::kClusterUrl;
using test::kEndpointsUrl;
using test::Packed;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Lines = std::vector<std::string>;

class AdsStateTest : public ::testing::Test {
 protected:
  // "cds a,b v=1 n=x node", "eds a v= n=y NACK: words"
  Lines Requests() {
    Lines out;
    for (const AdsRequest& request : state.TakeRequests(now)) {
      std::string line = request.type == XdsType::kCluster ? "cds " : "eds ";
      for (size_t i = 0; i < request.names.size(); ++i) line += (i == 0 ? "" : ",") + request.names[i];
      line += " v=" + request.version + " n=" + request.nonce;
      if (request.with_node) line += " node";
      if (!request.error.empty()) line += " NACK: " + request.error;
      out.push_back(line);
    }
    return out;
  }
  void Send(const std::string& url, const std::string& version, const std::string& nonce,
            const std::vector<Any>& resources) {
    state.Received(*ParseXdsResponse(test::ResponseBytes(url, version, nonce, resources)), now);
  }
  void SendClusters(const std::string& version, const std::vector<std::string>& names) {
    std::vector<Any> resources;
    for (const std::string& name : names) resources.push_back(Packed(EdsCluster(name)));
    Send(kClusterUrl, version, "c" + version, resources);
  }
  void SendList(const std::string& version, const std::string& name, const std::vector<std::string>& addresses) {
    Send(kEndpointsUrl, version, "e" + version, {Packed(Assignment(name, addresses))});
  }
  // Follows a and b, whose lists are there.
  void Settle() {
    state.Follow({"a", "b"});
    state.StreamBegun(true, false, now);
    Requests();
    SendClusters("1", {"a", "b"});
    Requests();
    Send(kEndpointsUrl, "1", "e1", {Packed(Assignment("a", {"10.0.0.1:1"})), Packed(Assignment("b", {"10.0.0.2:1"}))});
    Requests();
  }
  void Advance(base::Nanos by) {
    now += by;
    if (now >= state.due_at()) state.Tick(now);
  }
  Lines Names(const std::string& cluster) {
    Lines out;
    const AdsNews news = state.NewsOf(cluster);
    if (news.list == nullptr) return {"none"};
    for (const auto& endpoint : *news.list) out.push_back(endpoint.name);
    return out;
  }
  // Lines since the last look.
  static long Refusals(test::CapturedLog& log) {
    const std::string text = log.Take();
    return std::count(text.begin(), text.end(), '\n');
  }
  std::string Error(const std::string& cluster) { return state.NewsOf(cluster).error; }
  XdsResourceView View(const std::string& url, const std::string& name) {
    for (const auto& each : state.Describe(now).resources) {
      if (each.type_url == url && each.name == name) return each;
    }
    return {};
  }

  AdsState state;
  base::TimePoint now{std::chrono::hours(1)};
};

TEST_F(AdsStateTest, AClusterLeadsToItsListAndEachResponseIsAcked) {
  state.Follow({"b", "a"});
  EXPECT_THAT(Requests(), IsEmpty()) << "there is no stream yet";
  state.StreamBegun(true, false, now);
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v= n= node")) << "without names EDS would be asked for everything";
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_FALSE(state.NewsOf("a").connected);
  Send(kClusterUrl, "7", "n1", {Packed(EdsCluster("a")), Packed(EdsCluster("b", "b-service"))});
  EXPECT_TRUE(state.NewsOf("a").connected);
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=7 n=n1", "eds a,b-service v= n="));
  EXPECT_THAT(Names("a"), ElementsAre("none"));
  Send(kEndpointsUrl, "3", "n2", {Packed(Assignment("b-service", {"10.0.0.2:1"}))});
  EXPECT_THAT(Requests(), ElementsAre("eds a,b-service v=3 n=n2"));
  EXPECT_THAT(Names("a"), ElementsAre("none")) << "a list that has not come yet is not an empty one";
  EXPECT_THAT(Names("b"), ElementsAre("10.0.0.2:1"));
  Send(kEndpointsUrl, "4", "n3", {Packed(Assignment("a", {}))});
  EXPECT_THAT(Names("a"), IsEmpty());
  EXPECT_EQ(state.NewsOf("a").error, "");
  EXPECT_EQ(View(kEndpointsUrl, "a").state, XdsResourceState::kAcked);
  EXPECT_EQ(View(kEndpointsUrl, "b-service").version, "3");
}

TEST_F(AdsStateTest, WhatIsWrongIsRefusedWithWordsAndTheRestIsUsed) {
  Settle();
  auto bad = Assignment("a", {"10.0.0.9:1"});
  bad.mutable_endpoints(0)->set_priority(9);
  Send(kEndpointsUrl, "2", "e2", {Packed(bad), Packed(Assignment("b", {"10.0.0.3:1"}))});
  EXPECT_THAT(Requests(), ElementsAre("eds a,b v=1 n=e2 NACK: \"a\": endpoints[0].priority: 9; allowed: [0, 7]"));
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.1:1"));
  EXPECT_EQ(Error("a"), "the endpoint list \"a\" was refused: endpoints[0].priority: 9; allowed: [0, 7]");
  EXPECT_THAT(Names("b"), ElementsAre("10.0.0.3:1"));
  EXPECT_EQ(Error("b"), "");
  const XdsResourceView view = View(kEndpointsUrl, "a");
  EXPECT_EQ(view.state, XdsResourceState::kNacked);
  EXPECT_EQ(view.version, "1");
  EXPECT_EQ(view.refused, "2");
  EXPECT_EQ(View(kEndpointsUrl, "b").version, "2");
  EXPECT_EQ(state.Describe(now, false).counts[1].acked, 1u);
  EXPECT_EQ(state.Describe(now, false).counts[1].refused, 1u);
  SendList("3", "a", {"10.0.0.4:1"});
  EXPECT_THAT(Requests(), ElementsAre("eds a,b v=3 n=e3"));
  EXPECT_EQ(Error("a"), "");
  EXPECT_EQ(View(kEndpointsUrl, "a").state, XdsResourceState::kAcked);
}

TEST_F(AdsStateTest, AResourceWithoutANameIsRefusedAndNothingIsTakenForMissing) {
  Settle();
  Send(kClusterUrl, "2", "c2", {Packed(EdsCluster("a", "new")), test::Garbage(kClusterUrl)});
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=1 n=c2 NACK: resources[1]: cannot be decoded as what its type says",
                                      "eds b,new v=1 n=e1"));
  EXPECT_THAT(Names("b"), ElementsAre("10.0.0.2:1"));
}

TEST_F(AdsStateTest, WhatWasNotAskedForIsPassedOver) {
  Settle();
  auto other = EdsCluster("other");
  other.set_type(test::XdsCluster::STATIC);
  Send(kClusterUrl, "2", "c2", {Packed(EdsCluster("a")), Packed(EdsCluster("b")), Packed(other)});
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=2 n=c2")) << "its mistakes are another client's";
  Send("type.googleapis.com/envoy.config.listener.v3.Listener", "1", "l1", {});
  EXPECT_THAT(Requests(), IsEmpty());
}

TEST_F(AdsStateTest, EndpointsBeforeAnyWereAskedForAreNotAnswered) {
  state.Follow({"a"});
  state.StreamBegun(true, false, now);
  Requests();
  SendList("1", "a", {"10.0.0.1:1"});
  EXPECT_THAT(Requests(), IsEmpty()) << "an answer without names would ask for everything";
}

TEST_F(AdsStateTest, ANewClusterIsAddedToTheRequestAndOneThatIsGoneLeavesIt) {
  Settle();
  state.Follow({"b", "c"});
  EXPECT_THAT(Requests(), ElementsAre("cds b,c v=1 n=c1", "eds b v=1 n=e1"));
  EXPECT_THAT(Names("a"), ElementsAre("none"));
  state.Follow({});
  EXPECT_THAT(Requests(), ElementsAre("cds  v=1 n=c1", "eds  v=1 n=e1"));
}

TEST_F(AdsStateTest, AClusterThatIsLeftOutIsGoneAndComesBack) {
  Settle();
  SendClusters("2", {"b"});
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=2 n=c2", "eds b v=1 n=e1"));
  EXPECT_EQ(Error("a"), "the cluster \"a\" does not exist on the server");
  EXPECT_EQ(View(kClusterUrl, "a").state, XdsResourceState::kDoesNotExist);
  EXPECT_THAT(Names("b"), ElementsAre("10.0.0.2:1"));
  SendClusters("3", {"a", "b"});
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=3 n=c3", "eds a,b v=1 n=e1"));
  SendList("2", "a", {"10.0.0.5:1"});
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.5:1"));
  EXPECT_EQ(Error("a"), "");
}

TEST_F(AdsStateTest, AServerMayHaveItsDeletionsIgnored) {
  Settle();
  state.StreamEnded("x");
  state.StreamBegun(false, /*ignore_deletion=*/true, now);
  Requests();
  SendClusters("2", {"b"});
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=2 n=c2"));
  EXPECT_EQ(Error("a"), "");
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.1:1"));
  EXPECT_EQ(View(kClusterUrl, "a").state, XdsResourceState::kAcked);
}

TEST_F(AdsStateTest, AListThatIsLeftOutStays) {
  Settle();
  Send(kEndpointsUrl, "2", "e2", {});
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.1:1"));
  EXPECT_EQ(Error("a"), "");
}

TEST_F(AdsStateTest, WhatDoesNotComeInFifteenSecondsDoesNotExist) {
  state.Follow({"a", "b"});
  state.StreamBegun(true, false, now);
  Requests();
  SendClusters("1", {"b"});
  Advance(seconds(14));
  EXPECT_EQ(Error("a"), "") << "the response may be older than the request";
  Requests();  // the list of b is asked for now
  Advance(seconds(1));
  EXPECT_EQ(Error("a"), "the cluster \"a\" does not exist on the server");
  EXPECT_EQ(Error("b"), "");
  Advance(seconds(14));
  EXPECT_EQ(Error("b"), "the endpoint list \"b\" does not exist on the server");
  EXPECT_EQ(state.due_at(), base::kNever);
  EXPECT_FALSE(state.lacks());
  SendClusters("2", {"a", "b"});
  EXPECT_EQ(Error("a"), "") << "it has come after all";
}

TEST_F(AdsStateTest, NothingIsTakenForAbsentWhileThereIsNoStream) {
  state.Follow({"a"});
  state.StreamBegun(true, false, now);
  Requests();
  Advance(seconds(14));
  state.StreamEnded("away");
  Advance(seconds(20));
  EXPECT_EQ(Error("a"), "away");
  state.StreamBegun(false, false, now);
  Requests();
  Advance(seconds(14));
  EXPECT_EQ(View(kClusterUrl, "a").state, XdsResourceState::kRequested);
  Advance(seconds(1));
  EXPECT_EQ(View(kClusterUrl, "a").state, XdsResourceState::kDoesNotExist);
}

TEST_F(AdsStateTest, ANewStreamBeginsWithTheLastVersionsAndWithoutNonces) {
  Settle();
  state.StreamEnded("closed");
  EXPECT_EQ(Error("a"), "") << "a stream that has brought something may end";
  EXPECT_FALSE(state.NewsOf("a").connected);
  EXPECT_THAT(Requests(), IsEmpty());
  state.StreamBegun(false, false, now);
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=1 n= node", "eds a,b v=1 n="));
  EXPECT_EQ(state.due_at(), now + AdsState::kSettledAfter) << "what is there is not waited for";
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.1:1"));
}

TEST_F(AdsStateTest, AnotherServersVersionsAreItsOwn) {
  Settle();
  state.StreamEnded("closed");
  state.StreamBegun(/*another=*/true, false, now);
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v= n= node", "eds a,b v= n="));
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.1:1"));
}

TEST_F(AdsStateTest, AStreamWithoutAnAnswerIsAnErrorUntilOneHolds) {
  Settle();
  state.StreamEnded("closed");
  state.StreamBegun(false, false, now);
  Requests();
  state.StreamEnded("cannot be asked: UNAVAILABLE");
  EXPECT_EQ(Error("a"), "cannot be asked: UNAVAILABLE");
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.1:1"));
  state.StreamBegun(false, false, now);
  Requests();
  Advance(seconds(9));
  EXPECT_EQ(Error("a"), "cannot be asked: UNAVAILABLE");
  EXPECT_FALSE(state.NewsOf("a").connected);
  Advance(seconds(1));
  EXPECT_EQ(Error("a"), "") << "a server that knows the versions has nothing to say";
  EXPECT_TRUE(state.NewsOf("a").connected);
  state.StreamEnded("closed");
  EXPECT_EQ(Error("a"), "") << "it was well, though it said nothing";
}

TEST_F(AdsStateTest, ARefusedClusterKeepsTheOneBefore) {
  Settle();
  auto bad = EdsCluster("a");
  bad.set_type(test::XdsCluster::LOGICAL_DNS);
  Send(kClusterUrl, "2", "c2", {Packed(bad), Packed(EdsCluster("b"))});
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=1 n=c2 NACK: \"a\": type: LOGICAL_DNS; allowed: EDS"));
  SendList("2", "a", {"10.0.0.6:1"});
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.6:1"));
  EXPECT_EQ(Error("a"), "the cluster \"a\" was refused: type: LOGICAL_DNS; allowed: EDS");
}

TEST_F(AdsStateTest, AnEqualListIsTheSameOneAndNewAllTheSame) {
  Settle();
  const AdsNews before = state.NewsOf("a");
  now += seconds(1);
  SendList("2", "a", {"10.0.0.1:1"});
  const AdsNews after = state.NewsOf("a");
  EXPECT_EQ(after.list, before.list);
  EXPECT_NE(after.given_at, before.given_at);
  EXPECT_FALSE(after == before);
  EXPECT_EQ(state.NewsOf("b"), state.NewsOf("b"));
}

TEST_F(AdsStateTest, TheWordsOfANackAreBounded) {
  std::set<std::string> names;
  std::vector<Any> resources;
  for (int i = 0; i < 1000; ++i) {
    auto bad = EdsCluster("cluster-" + std::to_string(i));
    names.insert(bad.name());
    bad.set_type(test::XdsCluster::STATIC);
    resources.push_back(Packed(bad));
  }
  state.Follow(names);
  state.StreamBegun(true, false, now);
  Requests();
  Send(kClusterUrl, "1", "n", resources);
  const std::vector<AdsRequest> requests = state.TakeRequests(now);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_LE(requests[0].error.size(), AdsState::kErrorBytesMax);
  EXPECT_GT(requests[0].error.size(), AdsState::kErrorBytesMax / 2);
}

TEST_F(AdsStateTest, ANackOfWhatIsSentAgainAtOnceWaitsLongerEachTime) {
  Settle();
  auto bad = Assignment("a", {"10.0.0.9:1"});
  bad.mutable_endpoints(0)->set_priority(9);
  // A server that answers each NACK at once.
  const base::TimePoint begin = now;
  int nacks = 0;
  while (now < begin + seconds(60)) {
    Send(kEndpointsUrl, "2", "e" + std::to_string(nacks), {Packed(bad)});
    Lines requests = Requests();
    while (requests.empty()) {
      ASSERT_GT(state.due_at(), now);
      ASSERT_LE(state.due_at(), now + AnswerPace::kPauseMax);
      Advance(state.due_at() - now);
      requests = Requests();
    }
    ASSERT_THAT(requests, ElementsAre(HasSubstr("n=e" + std::to_string(nacks++) + " NACK: \"a\": endpoints[0]")));
  }
  EXPECT_GT(nacks, 30);
  EXPECT_LT(nacks, 40);
  EXPECT_THAT(Names("a"), ElementsAre("10.0.0.1:1"));
}

TEST_F(AdsStateTest, APacedNackDelaysNoOtherTypeAndGoesWithTheNextRequest) {
  Settle();
  auto bad = Assignment("a", {"10.0.0.9:1"});
  bad.mutable_endpoints(0)->set_priority(9);
  Send(kEndpointsUrl, "2", "e2", {Packed(bad)});
  EXPECT_THAT(Requests(), ElementsAre(HasSubstr("n=e2 NACK")));
  Send(kEndpointsUrl, "2", "e3", {Packed(bad)});
  EXPECT_THAT(Requests(), IsEmpty());
  Send(kClusterUrl, "2", "c2", {Packed(EdsCluster("a")), Packed(EdsCluster("b"))});
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=2 n=c2"));
  Send(kClusterUrl, "3", "c3", {Packed(EdsCluster("a")), Packed(EdsCluster("b", "b2"))});
  EXPECT_THAT(Requests(), ElementsAre("cds a,b v=3 n=c3", HasSubstr("eds a,b2 v=1 n=e3 NACK: \"a\": endpoints[0]")));
  Advance(seconds(1));
  EXPECT_THAT(Requests(), IsEmpty());
}

TEST_F(AdsStateTest, WhatIsAcceptedAfterANackIsAckedAtOnce) {
  Settle();
  auto bad = Assignment("a", {"10.0.0.9:1"});
  bad.mutable_endpoints(0)->set_priority(9);
  for (int i = 0; i < 5; ++i) Send(kEndpointsUrl, "2", "e" + std::to_string(i), {Packed(bad)});
  SendList("3", "a", {"10.0.0.4:1"});
  EXPECT_THAT(Requests(), ElementsAre("eds a,b v=3 n=e3"));
  EXPECT_EQ(state.due_at(), base::kNever);
  // NACKs stay apart though good versions come between them.
  Send(kEndpointsUrl, "4", "e4", {Packed(bad)});
  EXPECT_THAT(Requests(), IsEmpty());
  Advance(AnswerPace::kPause);
  EXPECT_THAT(Requests(), ElementsAre(HasSubstr("n=e4 NACK")));
}

TEST_F(AdsStateTest, AnAckOfWhatIsSentAgainAtOnceIsPacedToo) {
  Settle();
  int acks = 0;
  const base::TimePoint begin = now;
  while (now < begin + seconds(60)) {
    SendList("1", "a", {"10.0.0.1:1"});
    if (!Requests().empty())
      ++acks;
    else
      Advance(state.due_at() - now);
  }
  EXPECT_GT(acks, 5);
  EXPECT_LT(acks, 40);
}

// A line for each change: the words or the version differ. Another NACK of the same says nothing.
TEST_F(AdsStateTest, ARefusedVersionIsLoggedOnce) {
  test::CapturedLog log;
  Settle();
  auto bad = Assignment("a", {"10.0.0.9:1"});
  bad.mutable_endpoints(0)->set_priority(9);
  for (int i = 0; i < 100; ++i) Send(kEndpointsUrl, "2", "e" + std::to_string(i), {Packed(bad)});
  EXPECT_EQ(Refusals(log), 1);
  Send(kEndpointsUrl, "3", "x", {Packed(bad)});
  EXPECT_EQ(Refusals(log), 1);
  for (int i = 10; i < 100; ++i) Send(kEndpointsUrl, std::to_string(i), "x", {Packed(bad)});
  EXPECT_EQ(Refusals(log), base::LogLimit::kLines - 2) << "a server that counts its versions on";
}

TEST_F(AdsStateTest, ARestForgetsTheStreamAndKeepsNothingToSay) {
  Settle();
  state.Follow({});
  state.Rest();
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_EQ(state.Describe(now).stream, AdsStreamState::kNone);
  EXPECT_EQ(state.due_at(), base::kNever);
}

}  // namespace
}  // namespace sluice::discovery
