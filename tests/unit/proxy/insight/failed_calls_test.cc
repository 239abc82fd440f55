// FailedCalls: which calls are kept with what of them, and that nothing is kept of one that succeeds.
#include "proxy/insight/failed_calls.h"

#include <gtest/gtest.h>

#include "proxy/insight/insight.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::GrpcRequest;
using h2::Headers;
using h2::Message;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

using Pairs = h2::Fields;

class FailedCallTest : public test::ProxyFixture {
 public:
  FailedCallTest() { insight = std::make_shared<Insight>(InsightOptions{}, workers); }

  Pairs With(std::string name, std::string value) {
    Pairs fields = GrpcRequest();
    fields.emplace_back(std::move(name), std::move(value));
    return fields;
  }
  void Ask(FramePeer& client, uint32_t id, const Pairs& fields = GrpcRequest()) {
    client.Send(Headers(id, Block(fields)) + Data(id, Message("question"), h2::kEndStream));
    Run();
  }
  std::vector<FailedCall> Failed() { return insight->failed.Read().calls; }
  // Of the last block that the client got on the stream.
  std::string Trailer(FramePeer& client, uint32_t id, const std::string& name) {
    if (client.streams[id].headers.empty()) return "";
    for (const auto& [field, value] : client.streams[id].headers.back()) {
      if (field == name) return value;
    }
    return "";
  }
};

TEST_F(FailedCallTest, ACallThatSucceedsLeavesNothing) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  Respond(Up(), 1, "answer");
  Run();
  EXPECT_TRUE(Failed().empty());
  EXPECT_EQ(Trailer(client, 1, "sluice-call-id"), "");
}

// What the endpoint says of its status, decoded and bounded.
TEST_F(FailedCallTest, TheEndpointsOwnMessageIsKept) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const auto fails_with = [&](uint32_t id, const std::string& message) {
    Ask(client, id);
    Pairs only = h2::GrpcResponse();
    only.emplace_back("grpc-status", "5");
    only.emplace_back("grpc-message", message);
    Up().Send(Headers(id, Block(only), kLast));
    Run();
    return Failed().at(0).detail;
  };
  EXPECT_EQ(fails_with(1, "no user%3A \"%C3%A9\"%0A%zz%4"), "no user: \"\xc3\xa9\"\n%zz%4");
  EXPECT_EQ(Failed().at(0).cause, "");
  EXPECT_EQ(fails_with(3, std::string(255, 'x') + "%C3%A9"), std::string(255, 'x')) << "no half of a character";
  EXPECT_EQ(fails_with(5, std::string(3000, 'y')), std::string(256, 'y'));
}

TEST_F(FailedCallTest, TheTrailerLeadsToTheRecord) {
  routes[0].service = "other.Service";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1, With("x-request-id", "req-17"));
  Ask(client, 3);
  const auto failed = Failed();
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[1].id.ToString(), Trailer(client, 1, "sluice-call-id"));
  EXPECT_EQ(failed[0].id.ToString(), Trailer(client, 3, "sluice-call-id"));
  EXPECT_NE(failed[0].id, failed[1].id);
  EXPECT_EQ(failed[1].request_id, "req-17");
  EXPECT_EQ(failed[0].request_id, "");
  EXPECT_EQ(failed[1].path, "/pkg.Service/Method");
  EXPECT_EQ(failed[1].peer, "192.0.2.7:40000");
  EXPECT_EQ(failed[1].status, GrpcCode::kUnimplemented);
  EXPECT_EQ(failed[1].cause, "no_route");
  EXPECT_EQ(failed[1].route, "");
  EXPECT_EQ(failed[1].attempts, 0u);
  EXPECT_EQ(failed[1].to_upstream, base::Nanos(-1));
}

TEST_F(FailedCallTest, ADeadlineAtALimitSaysWhichAndHowLong) {
  cluster.concurrency.max = 1;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  Advance(milliseconds(5));
  Ask(client, 3, With("grpc-timeout", "40m"));
  Advance(milliseconds(40));
  ASSERT_EQ(Failed().size(), 1u);
  const FailedCall call = Failed()[0];
  EXPECT_EQ(call.cause, "deadline");
  EXPECT_EQ(call.limit, "cluster/c/concurrency");
  EXPECT_EQ(call.waits, "cluster/c/concurrency=40.000ms");
  EXPECT_EQ(call.processed, "no");
  EXPECT_EQ(call.endpoint, "");
  EXPECT_EQ(call.attempts, 0u);
  EXPECT_EQ(call.route, "r");
  EXPECT_EQ(call.cluster, "c");
  EXPECT_EQ(call.total, milliseconds(40));
}

TEST_F(FailedCallTest, ADeadlineAtAHungBackendSaysWhichAndSinceWhen) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1, With("grpc-timeout", "100m"));
  Advance(milliseconds(100));
  Run();
  ASSERT_EQ(Failed().size(), 1u);
  const FailedCall call = Failed()[0];
  EXPECT_EQ(call.status, GrpcCode::kDeadlineExceeded);
  EXPECT_EQ(call.cause, "deadline");
  EXPECT_EQ(call.endpoint, "10.0.0.1:1");
  EXPECT_EQ(call.attempts, 1u);
  EXPECT_EQ(call.to_upstream, base::Nanos(0));
  EXPECT_EQ(call.to_response, base::Nanos(-1));
  EXPECT_EQ(call.total, milliseconds(100));
  EXPECT_EQ(call.processed, "maybe");
  EXPECT_EQ(call.request_bytes, Message("question").size());
}

TEST_F(FailedCallTest, AStatusOfTheBackendHasItsEndpointAndNoReason) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  Advance(milliseconds(3));
  Up().Send(
      Headers(1, Block({{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "13"}}), kLast));
  Run();
  ASSERT_EQ(Failed().size(), 1u);
  EXPECT_EQ(Failed()[0].status, GrpcCode::kInternal);
  EXPECT_EQ(Failed()[0].cause, "");
  EXPECT_EQ(Failed()[0].endpoint, "10.0.0.1:1");
  EXPECT_EQ(Trailer(client, 1, "sluice-call-id"), "");  // the block is the backend's
}

TEST_F(FailedCallTest, EachTryIsThereWithoutAnAccessLog) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  routes[0].retry.attempts_max = 2;
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  const auto refuse = [&](const std::string& address) {
    Advance(milliseconds(2));
    Up(address).Send(
        Headers(1, Block({{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "14"}}), kLast));
    Run();
  };
  refuse("10.0.0.1:1");
  refuse("10.0.0.2:1");
  ASSERT_EQ(Failed().size(), 1u);
  const FailedCall call = Failed()[0];
  EXPECT_EQ(call.status, GrpcCode::kUnavailable);
  EXPECT_EQ(call.attempts, 2u);
  EXPECT_EQ(call.tries, "10.0.0.1:1:UNAVAILABLE:2.000ms,10.0.0.2:1:UNAVAILABLE:2.000ms");
  EXPECT_EQ(call.endpoint, "10.0.0.2:1");
}

// --- What is kept ---

CallRecord RecordAt(base::TimePoint ended, std::string_view path) {
  CallRecord call;
  call.path = path;
  call.status = GrpcCode::kUnavailable;
  call.ended = ended;
  return call;
}

TEST(FailedCalls, WhatAnyClientCanCauseIsCommon) {
  for (const base::ErrorKind kind : {base::ErrorKind::kMalformedRequest, base::ErrorKind::kNoRoute,
                                     base::ErrorKind::kCancelled, base::ErrorKind::kRateLimited}) {
    const base::Error error = base::MakeError(kind, "x");
    EXPECT_EQ(FailedCalls::KindOf(ToGrpcCode(kind), &error), FailedCalls::Kind::kCommon) << base::Reason(kind);
  }
}

TEST(FailedCalls, ThoseInPlentyDoNotWashOutTheOthers) {
  FailedCalls calls(3, 1);
  base::TimePoint now(std::chrono::hours(1));
  calls.Add(RecordAt(now, "/rare"), FailedCalls::Kind::kRare, 0);
  for (int i = 0; i < 50; ++i) {
    now += milliseconds(1);
    ASSERT_TRUE(calls.Takes(FailedCalls::Kind::kCommon, now, 0));
    calls.Add(RecordAt(now, "/common" + std::to_string(i)), FailedCalls::Kind::kCommon, 0);
  }
  const FailedCalls::Seen seen = calls.Read();
  ASSERT_EQ(seen.calls.size(), 4u);
  EXPECT_EQ(seen.calls[0].path, "/common49");
  EXPECT_EQ(seen.calls[2].path, "/common47");
  EXPECT_EQ(seen.calls[3].path, "/rare");
  EXPECT_EQ(seen.written, 51u);
}

TEST(FailedCalls, CommonOnesBeyondTheirRateAreOnlyCounted) {
  FailedCalls calls(3, 2);
  base::TimePoint now(std::chrono::hours(1));
  uint32_t taken = 0;
  for (int i = 0; i < 500; ++i) taken += calls.Takes(FailedCalls::Kind::kCommon, now, 1) ? 1 : 0;
  EXPECT_EQ(taken, FailedCalls::kCommonPerSecond);
  EXPECT_EQ(calls.Read().left_out, 500 - FailedCalls::kCommonPerSecond);
  EXPECT_TRUE(calls.Takes(FailedCalls::Kind::kRare, now, 1));
  EXPECT_TRUE(calls.Takes(FailedCalls::Kind::kCommon, now, 0));
  EXPECT_TRUE(calls.Takes(FailedCalls::Kind::kCommon, now + std::chrono::seconds(1), 1));
}

TEST(FailedCalls, LongTextsAreCutAndSaySo) {
  FailedCalls calls(1, 1);
  const std::string longer(5000, 'x');
  CallRecord call = RecordAt({}, longer);
  call.peer = call.client = call.authority = call.route = call.cluster = call.endpoint = longer;
  call.tries = call.waits = call.limit = call.cause = call.processed = call.detail = call.cache = longer;
  call.request_id = longer;
  calls.Add(call, FailedCalls::Kind::kRare, 0);
  const FailedCall kept = calls.Read().calls[0];
  EXPECT_EQ(kept.path, std::string(FailedCalls::kPathBytesMax, 'x') + "...(+4808 bytes)");
  EXPECT_EQ(kept.request_id, std::string(kRequestIdBytesMax, 'x') + "...(+4872 bytes)");
}

TEST(CallId, IsTheProcessTheWorkerAndANumber) {
  const std::string text = CallId::Of(2, 0x1a7).ToString();
  EXPECT_EQ(text.size(), 8u + 1 + 1 + 1 + 3);
  EXPECT_EQ(text.substr(8), "-2-1a7");
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), 8u);
  EXPECT_EQ(CallId().ToString(), "");
  EXPECT_EQ(CallId::Of(255, 5).worker(), 255u);
}

}  // namespace
}  // namespace sluice::proxy
