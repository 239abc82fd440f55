// What calls say of a trace to their endpoints, which of them are taken when they end, and what their records have.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "proxy/tracing/span_record.h"
#include "proxy/tracing/tracer.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::Headers;
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

constexpr char kSampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr char kNotSampled[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
constexpr TraceId kTrace{0x0af7651916cd43dd, 0x8448eb211c80319c};
constexpr uint64_t kCaller = 0xb7ad6b7169203331;

// A record with memory of its own.
struct Taken {
  std::vector<uint8_t> bytes;
  SpanView view;
};

class CallTracingTest : public test::ProxyFixture {
 public:
  CallTracingTest() {
    tracing.endpoint = "unix:/never/connected";
    tracing.errors = false;
  }
  void Begin(const std::vector<std::string>& addresses = {"10.0.0.1:1"}) {
    rings = std::make_shared<SpanRings>(workers, tracing.buffer_bytes);
    tracer = std::make_shared<const Tracer>(tracing, rings);
    Start(addresses);
    client = &Client();
  }
  void Ask(const Fields& fields = {}) {
    asked += 2;
    client->Send(Headers(asked, Block(With(GrpcRequest(), fields)), kLast));
    Run();
  }
  // One call, answered with this status; the headers that the endpoint got.
  Fields Answered(const Fields& fields, const std::string& status = "0") {
    Ask(fields);
    const uint32_t id = asked;
    Up().Send(Headers(id, Block(With(h2::GrpcResponse(), h2::GrpcTrailers(status))), kLast));
    Run();
    EXPECT_EQ(client->streams[asked].Value("grpc-status"), status);
    return Up().streams[id].headers[0];
  }
  std::vector<std::unique_ptr<Taken>> Take() {
    std::vector<std::unique_ptr<Taken>> out;
    for (const auto& ring : rings->all()) {
      while (ring->Take([&](std::span<const uint8_t> record) {
        out.push_back(std::make_unique<Taken>());
        out.back()->bytes.assign(record.begin(), record.end());
        out.back()->view.Read(out.back()->bytes);
      })) {
      }
      ring->Free();
    }
    return out;
  }
  static std::string Value(const Fields& fields, const std::string& name) {
    std::string out = "<none>";
    for (const auto& [key, value] : fields) {
      if (key == name) out = out == "<none>" ? value : out + " and " + value;
    }
    return out;
  }

  TracingOptions tracing;
  std::shared_ptr<SpanRings> rings;
  FramePeer* client = nullptr;
  uint32_t asked = static_cast<uint32_t>(-1);
};

TEST_F(CallTracingTest, TheEndpointIsToldTheAttemptsSpanBelowTheCalls) {
  Begin();
  const Fields sent = Answered({{"traceparent", kSampled}, {"tracestate", "a=1"}, {"tracestate", "b=2"}});
  const auto told = ParseTraceparent(Value(sent, "traceparent"));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->trace, kTrace);
  EXPECT_TRUE(told->sampled);
  EXPECT_EQ(Value(sent, "tracestate"), "a=1 and b=2");
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  const SpanView& call = taken[0]->view;
  EXPECT_EQ(call.words.trace, kTrace);
  EXPECT_EQ(call.words.parent, kCaller);
  EXPECT_TRUE(call.words.sampled);
  EXPECT_EQ(call.text(SpanText::kPath), "/pkg.Service/Method");
  EXPECT_EQ(call.text(SpanText::kRoute), "r");
  EXPECT_EQ(call.text(SpanText::kState), "a=1,b=2");
  ASSERT_EQ(call.attempts.size(), 1u);
  EXPECT_EQ(call.attempts[0].span, told->span);
  EXPECT_EQ(call.attempts[0].endpoint, "10.0.0.1:1");
  EXPECT_EQ(call.attempts[0].end, "OK");
  EXPECT_NE(call.words.span, told->span);
  EXPECT_NE(call.words.span, kCaller);
}

TEST_F(CallTracingTest, OfACallThatIsNotTracedNoHeaderIsTouched) {
  Begin();
  const std::vector<Fields> cases = {
      {},
      {{"traceparent", kNotSampled}, {"tracestate", "a=1"}},
      {{"traceparent", "garbage"}, {"tracestate", "A=?"}},
      {{"grpc-trace-bin", "bm90aGluZw"}},
      {{"traceparent", kSampled}, {"traceparent", kSampled}},  // twice: it says nothing
  };
  for (const Fields& fields : cases) EXPECT_EQ(Answered(fields), With(GrpcRequest(), fields));
  EXPECT_TRUE(Take().empty());
}

TEST_F(CallTracingTest, WithoutACallerTheRatioDecidesAndTheTraceIsNew) {
  tracing.ratio = 1;
  Begin();
  // tracestate without a traceparent belongs to no trace.
  const Fields sent = Answered({{"traceparent", "00-bad"}, {"tracestate", "a=1"}});
  const auto told = ParseTraceparent(Value(sent, "traceparent"));
  ASSERT_TRUE(told) << Value(sent, "traceparent");
  EXPECT_TRUE(told->sampled);
  EXPECT_TRUE(told->random);
  EXPECT_EQ(Value(sent, "tracestate"), "<none>");
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0]->view.words.trace, told->trace);
  EXPECT_EQ(taken[0]->view.words.parent, 0u);
  EXPECT_EQ(taken[0]->view.text(SpanText::kState), "");
  Answered({{"traceparent", kNotSampled}});
  EXPECT_TRUE(Take().empty()) << "its caller has decided";
}

TEST_F(CallTracingTest, AStateThatIsNotLegalIsDroppedWhole) {
  Begin();
  const Fields sent = Answered({{"traceparent", kSampled}, {"tracestate", "a=1"}, {"tracestate", "B=2"}});
  EXPECT_EQ(Value(sent, "tracestate"), "<none>");
}

TEST_F(CallTracingTest, TheRatioIsTakenOfTheTracesIdWhereCallersAreNotTrusted) {
  tracing.parent = false;
  tracing.ratio = 0.5;
  Begin();
  // The last 7 bytes decide, so each proxy with the same ratio decides the same.
  const std::string high = "00-000000000000000000800000000000ff-b7ad6b7169203331-00";
  const std::string low = "00-0000000000000000ff7fffffffffffff-b7ad6b7169203331-01";
  EXPECT_TRUE(ParseTraceparent(Value(Answered({{"traceparent", high}}), "traceparent"))->sampled);
  EXPECT_EQ(Take().size(), 1u);
  EXPECT_EQ(Value(Answered({{"traceparent", low}}), "traceparent"), low);
  EXPECT_TRUE(Take().empty());
}

TEST_F(CallTracingTest, ARatioOfOneInTenIsAboutThat) {
  tracing.ratio = 0.1;
  Begin();
  size_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    Answered({});
    taken += Take().size();
  }
  EXPECT_GT(taken, 60u);
  EXPECT_LT(taken, 140u);
}

TEST_F(CallTracingTest, AFailedCallIsTakenThoughItsHeadersWereNotTouched) {
  tracing.errors = true;
  Begin();
  const Fields fields = {{"traceparent", kNotSampled}};
  EXPECT_EQ(Answered(fields, "5"), With(GrpcRequest(), fields));
  Answered(fields, "0");
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  const SpanView& call = taken[0]->view;
  EXPECT_EQ(call.words.trace, kTrace);
  EXPECT_EQ(call.words.parent, kCaller);
  EXPECT_FALSE(call.words.sampled);
  EXPECT_EQ(call.words.status, 5);
  ASSERT_EQ(call.attempts.size(), 1u);
  EXPECT_EQ(call.attempts[0].span, 0u);
  EXPECT_EQ(call.attempts[0].end, "NOT_FOUND");
  EXPECT_EQ(call.attempts[0].endpoint, "10.0.0.1:1");
}

TEST_F(CallTracingTest, WherePropagatedToAllAFailedCallIsOneTraceWithItsEndpoints) {
  tracing.errors = true;
  tracing.propagate = TracingOptions::Propagate::kAll;
  Begin();
  const auto told = ParseTraceparent(Value(Answered({}, "13"), "traceparent"));
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->sampled);
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0]->view.words.trace, told->trace);
  EXPECT_EQ(taken[0]->view.attempts.at(0).span, told->span);
  EXPECT_TRUE(ParseTraceparent(Value(Answered({}), "traceparent")));
  EXPECT_TRUE(Take().empty()) << "it is told, and not exported";
}

TEST_F(CallTracingTest, ASlowCallIsTaken) {
  tracing.slower_than = milliseconds(50);
  Begin();
  for (const int took : {50, 51}) {
    Ask();
    Advance(milliseconds(took));
    Respond(Up(), asked, "");
    Run();
  }
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0]->view.words.durations[2], 51'000'000);
  EXPECT_EQ(taken[0]->view.attempts.at(0).ended - taken[0]->view.attempts.at(0).began, 51'000'000);
}

TEST_F(CallTracingTest, ACallThatWasNeverSentHasNoAttempts) {
  tracing.errors = true;
  routes[0].service = "other.Service";
  Begin();
  Ask();
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_TRUE(taken[0]->view.attempts.empty());
  EXPECT_EQ(taken[0]->view.text(SpanText::kCause), "no_route");
}

TEST_F(CallTracingTest, EachAttemptHasASpanThatItsEndpointWasTold) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Begin({"10.0.0.1:1", "10.0.0.2:1"});
  Ask({{"traceparent", kSampled}});
  std::vector<std::string> order = {"10.0.0.1:1", "10.0.0.2:1"};
  if (!Connected(order[0]) || Up(order[0]).streams[1].headers.empty()) std::swap(order[0], order[1]);
  Advance(milliseconds(3));
  Up(order[0]).Send(Headers(1, Block(With(h2::GrpcResponse(), h2::GrpcTrailers("14"))), kLast));
  Run();
  Respond(Up(order[1]), 1, "");
  Run();
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  const SpanView& call = taken[0]->view;
  ASSERT_EQ(call.attempts.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(call.attempts[i].endpoint, order[i]);
    EXPECT_EQ(call.attempts[i].span, ParseTraceparent(Up(order[i]).streams[1].Value("traceparent"))->span);
  }
  EXPECT_NE(call.attempts[0].span, call.attempts[1].span);
  EXPECT_EQ(call.attempts[0].end, "UNAVAILABLE");
  EXPECT_EQ(call.attempts[0].ended - call.attempts[0].began, 3'000'000);
  EXPECT_EQ(call.attempts[1].end, "OK");
  EXPECT_EQ(call.words.attempts, 2u);
}

TEST_F(CallTracingTest, AHedgeIsAnAttemptBesideTheOther) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  routes[0].hedge = {milliseconds(20), 1};
  Begin({"10.0.0.1:1", "10.0.0.2:1"});
  Ask({{"traceparent", kSampled}});
  std::vector<std::string> order = {"10.0.0.1:1", "10.0.0.2:1"};
  if (!Connected(order[0]) || Up(order[0]).streams[1].headers.empty()) std::swap(order[0], order[1]);
  Advance(milliseconds(21));
  Respond(Up(order[1]), 1, "");
  Run();
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  const SpanView& call = taken[0]->view;
  ASSERT_EQ(call.attempts.size(), 2u);
  EXPECT_EQ(call.attempts[0].end, "cancelled");
  EXPECT_FALSE(call.attempts[0].hedge);
  EXPECT_EQ(call.attempts[1].end, "OK");
  EXPECT_TRUE(call.attempts[1].hedge);
  EXPECT_LT(call.attempts[1].began, call.attempts[0].ended + 1);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(call.attempts[i].endpoint, order[i]);
    EXPECT_EQ(call.attempts[i].span, ParseTraceparent(Up(order[i]).streams[1].Value("traceparent"))->span);
  }
}

TEST_F(CallTracingTest, AWaitForALimitHasItsName) {
  process.max = 1;
  process.queue_max = 4;
  Begin();
  Ask();
  Ask({{"traceparent", kSampled}});
  Advance(milliseconds(9));
  Respond(Up(), 1, "");
  Run();
  Respond(Up(), 3, "");
  Run();
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  const SpanView& call = taken[0]->view;
  ASSERT_EQ(call.waits.size(), 1u);
  EXPECT_EQ(call.waits[0].name, "process/concurrency");
  EXPECT_EQ(call.waits[0].nanos, 9'000'000);
  EXPECT_EQ(call.words.ended, call.waits[0].ended);
}

TEST_F(CallTracingTest, TheBinaryFormIsReadAndWhereItCameWritten) {
  Begin();
  const GrpcTraceText text = FormatGrpcTrace({kTrace, kCaller, true, false});
  const Fields sent = Answered({{"grpc-trace-bin", std::string(text.data(), text.size())}, {"tracestate", "a=1"}});
  const auto told = ParseTraceparent(Value(sent, "traceparent"));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->trace, kTrace);
  const auto binary = ParseGrpcTrace(Value(sent, "grpc-trace-bin"));
  ASSERT_TRUE(binary);
  EXPECT_EQ(*binary, (TraceContext{kTrace, told->span, true, false}));
  EXPECT_EQ(Value(sent, "tracestate"), "<none>") << "it belongs to no traceparent";
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0]->view.words.parent, kCaller);
}

TEST_F(CallTracingTest, AFetchOfTheCacheIsBelowTheCallThatLeadsItAndAHitIsOneSpan) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  Begin();
  const std::string request = Block(With(GrpcRequest(), {{"traceparent", kSampled}}));
  client->Send(Headers(1, request) + Data(1, Message("question"), h2::kEndStream));
  Run();
  Respond(Up(), 1, Message("answer"));
  Run();
  auto taken = Take();
  ASSERT_EQ(taken.size(), 2u);
  std::sort(taken.begin(), taken.end(), [](auto& a, auto& b) { return a->view.words.fetch < b->view.words.fetch; });
  const SpanView &call = taken[0]->view, &fetch = taken[1]->view;
  EXPECT_FALSE(call.words.fetch);
  EXPECT_TRUE(fetch.words.fetch);
  EXPECT_EQ(call.words.parent, kCaller);
  EXPECT_EQ(call.text(SpanText::kCache), "miss");
  EXPECT_TRUE(call.attempts.empty()) << "they are the fetch's";
  EXPECT_EQ(fetch.words.parent, call.words.span);
  ASSERT_EQ(fetch.attempts.size(), 1u);
  EXPECT_EQ(fetch.attempts[0].span, ParseTraceparent(Up().streams[1].Value("traceparent"))->span);

  client->Send(Headers(3, request) + Data(3, Message("question"), h2::kEndStream));
  Run();
  EXPECT_EQ(client->streams[3].Value("grpc-status"), "0");
  const auto hit = Take();
  ASSERT_EQ(hit.size(), 1u);
  EXPECT_EQ(hit[0]->view.text(SpanText::kCache), "hit");
  EXPECT_EQ(hit[0]->view.words.parent, kCaller);
}

TEST_F(CallTracingTest, WhatARingHasNoRoomForIsDroppedAndCounted) {
  tracing.buffer_bytes = 1024;
  Begin();
  for (int i = 0; i < 20; ++i) Answered({{"traceparent", kSampled}});
  const size_t kept = Take().size();
  EXPECT_GE(kept, 1u);
  EXPECT_EQ(kept + rings->dropped(), 20u);
  Answered({{"traceparent", kSampled}});
  EXPECT_EQ(Take().size(), 1u);
}

TEST_F(CallTracingTest, TextsAreCutAndALongStateIsLeftOut) {
  Begin();
  std::string state = "a=" + std::string(200, 'x') + ",b=" + std::string(200, 'y') + ",c=" + std::string(200, 'z');
  asked += 2;
  client->Send(Headers(
      asked,
      Block(With(GrpcRequest("/p/" + std::string(3000, 'p')), {{"traceparent", kSampled}, {"tracestate", state}})),
      kLast));
  Run();
  EXPECT_EQ(Up().streams[asked].Value("tracestate"), state);
  Respond(Up(), asked, "");
  Run();
  const auto taken = Take();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0]->view.text(SpanText::kPath).size(), kSpanPathBytesMax);
  EXPECT_EQ(taken[0]->view.text(SpanText::kState), "");
}

}  // namespace
}  // namespace sluice::proxy
