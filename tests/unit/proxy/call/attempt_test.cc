// Attempts over real pools and sessions: the states of one, and two of one exchange at a time.
#include "proxy/call/attempt.h"

#include <algorithm>

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Headers;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;
using State = Attempt::State;

// The client's stream: what the response comes to, and the credit for the request.
struct Receiver final : http2::StreamIo {
  void SendHeaders(const http2::HeaderList& fields, bool end) override {
    headers.emplace_back();
    for (const http2::Field* field : fields) headers.back().emplace_back(field->name(), field->value());
    ended |= end;
  }
  void SendData(const base::Slice& bytes, bool end) override {
    data += bytes.view();
    ended |= end;
  }
  void Consume(size_t bytes) override { credited += bytes; }
  void Reset(http2::ErrorCode) override { FAIL() << "an attempt does not reset its client"; }
  void Release() override { released = true; }

  std::vector<h2::Fields> headers;
  std::string data;
  size_t credited = 0;
  bool ended = false, released = false;
};

// The call's side, by hand: the first attempt that answers gets the sink, and all others are cancelled.
struct ByHand final : Exchange {
  ByHand(CallContext& context, Receiver& client, const h2::Fields& fields)
      : Exchange(context, &client, Canonicalize(List(fields), PathRule::kGrpc), /*ended=*/false) {}
  ~ByHand() { sink.Release(); }

  static http2::HeaderList List(const h2::Fields& fields) {
    http2::HeaderList list;
    for (const auto& [name, value] : fields) list.Add(name, value);
    return list;
  }
  void Append(std::string_view bytes, bool end) {
    body.Append(base::Slice::Copy(bytes));
    request_ended = end;
    for (Attempt* attempt : attempts) attempt->SendBody();
  }
  void OnResponse(Attempt& attempt) override {
    for (Attempt* other : attempts) {
      if (other != &attempt) other->Cancel();
    }
    attempt.OwnBody();
    sink.SendHeaders(attempt.response(), false);
  }
  void OnAttemptEnded(Attempt& attempt) override { ended.push_back(&attempt); }
  const RewriteOptions& Rewrite() const override { return rewrite; }
  void OnSending(const Attempt& attempt) override { sending.push_back(&attempt); }
  void OnAttemptFailing(Attempt&) override {}
  void OnConnected(Attempt&, base::Nanos) override {}

  std::vector<Attempt*> attempts, ended;
  std::vector<const Attempt*> sending;
  RewriteOptions rewrite;
};

class AttemptTest : public test::ProxyFixture {
 public:
  AttemptTest() : ProxyFixture(1) {}

  // Begins an attempt at endpoint `index` of the list.
  void Begin(Attempt& attempt, size_t index) {
    const std::shared_ptr<upstream::Endpoint>& endpoint = state().endpoints[index].endpoint;
    Permit permit;
    EXPECT_TRUE(Admission::TryEndpoint(*endpoint, permit));
    attempt.SetEndpoint(*endpoint, std::move(permit));
    attempt.Connect(*worker->context.pools.Get(endpoint, state().options, state().balancer->feedback()));
  }
  uint32_t InUse(size_t index) { return state().endpoints[index].endpoint->concurrency()->in_use(); }
  uint32_t InFlight(size_t index) {
    const upstream::EndpointPool* pool = state().endpoints[index].endpoint->pool(0);
    return pool != nullptr ? pool->in_flight() : 0;
  }
};

TEST_F(AttemptTest, GoesThroughItsStates) {
  cluster.endpoint_concurrency.max = 4;
  Start({"10.0.0.1:1"});
  Receiver client;
  ByHand call(worker->context, client, h2::GrpcRequest());
  Attempt attempt(call);
  call.attempts = {&attempt};
  EXPECT_EQ(attempt.state(), State::kPicking);
  attempt.AskAtSending();
  Begin(attempt, 0);
  EXPECT_EQ(attempt.state(), State::kConnecting);
  EXPECT_TRUE(call.sending.empty()) << "nothing is sent before there is a connection";
  EXPECT_EQ(InUse(0), 1u);
  EXPECT_EQ(InFlight(0), 1u);
  Run();
  EXPECT_EQ(attempt.state(), State::kSent);
  EXPECT_EQ(call.sending, std::vector<const Attempt*>{&attempt});
  call.Append("request", true);
  Run();
  EXPECT_EQ(Up().streams[1].data, "request");
  EXPECT_EQ(client.credited, 7u);
  Up().Send(Headers(1, Block(h2::GrpcResponse())));
  Run();
  EXPECT_EQ(attempt.state(), State::kAnswering);
  Up().Send(Data(1, "response") + Headers(1, Block(h2::GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(attempt.state(), State::kEnded);
  EXPECT_TRUE(attempt.complete() && attempt.has_trailers());
  EXPECT_EQ(attempt.error(), nullptr);
  EXPECT_EQ(client.data, "response");
  EXPECT_EQ(client.headers, (std::vector<h2::Fields>{h2::GrpcResponse()}));  // trailers are the exchange's to send
  EXPECT_EQ(call.ended, (std::vector<Attempt*>{&attempt}));
  EXPECT_EQ(InUse(0) + InFlight(0), 0u);
}

TEST_F(AttemptTest, OfTwoTheSecondAnswersAndTheFirstIsCancelled) {
  cluster.endpoint_concurrency.max = 4;
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  Receiver client;
  ByHand call(worker->context, client, h2::GrpcRequest());
  Attempt first(call), second(call);
  call.attempts = {&first};
  Begin(first, 0);
  Run();
  call.Append("begin-", false);
  Run();
  EXPECT_EQ(client.credited, 6u);
  // The second begins when part of the body has gone to the first.
  call.attempts.push_back(&second);
  Begin(second, 1);
  Run();
  call.Append("middle-", false);
  Run();
  FramePeer &one = Up("10.0.0.1:1"), &two = Up("10.0.0.2:1");
  EXPECT_EQ(one.streams[1].data, "begin-middle-");
  EXPECT_EQ(two.streams[1].data, "begin-middle-");
  EXPECT_EQ(one.streams[1].headers, two.streams[1].headers);
  EXPECT_EQ(client.credited, 13u);  // each byte once
  EXPECT_EQ(InUse(0), 1u);
  EXPECT_EQ(InUse(1), 1u);

  two.Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, "second"));
  Run();
  EXPECT_EQ(first.state(), State::kEnded);
  EXPECT_EQ(first.error(), nullptr);
  EXPECT_FALSE(first.complete());
  EXPECT_EQ(one.streams[1].reset, 8u);  // CANCEL
  EXPECT_EQ(InUse(0) + InFlight(0), 0u);
  EXPECT_EQ(second.state(), State::kAnswering);
  one.Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, "too late"));
  Run();
  EXPECT_EQ(client.data, "second");
  EXPECT_EQ(client.headers.size(), 1u);

  call.Append("end", true);
  Run();
  EXPECT_EQ(two.streams[1].data, "begin-middle-end");
  EXPECT_TRUE(two.streams[1].end);
  EXPECT_EQ(one.streams[1].data, "begin-middle-");
  two.Send(Headers(1, Block(h2::GrpcTrailers()), kLast));
  Run();
  EXPECT_TRUE(second.complete());
  EXPECT_EQ(call.ended, (std::vector<Attempt*>{&second}));  // a cancelled one is not told of
  EXPECT_EQ(client.credited, 16u);
}

TEST_F(AttemptTest, OfTwoOneFailsAndTheOtherGoesOn) {
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  net.host("10.0.0.2:1").mode = test::FakeHost::Mode::kRefuse;
  Receiver client;
  ByHand call(worker->context, client, h2::GrpcRequest());
  Attempt first(call), second(call);
  call.attempts = {&first, &second};
  Begin(first, 0);
  Begin(second, 1);
  call.Append("request", true);
  Run();
  EXPECT_EQ(second.state(), State::kEnded);
  ASSERT_NE(second.error(), nullptr);
  EXPECT_EQ(second.error()->kind, base::ErrorKind::kConnectFailed);
  EXPECT_EQ(first.state(), State::kSent);
  Up().Send(h2::RstStream(1, 7));  // REFUSED_STREAM
  Run();
  ASSERT_NE(first.error(), nullptr);
  EXPECT_EQ(first.error()->kind, base::ErrorKind::kUpstreamRefused);
  EXPECT_EQ(call.ended, (std::vector<Attempt*>{&second, &first}));
  // Either may be used again, with all of the body.
  first.Restart();
  EXPECT_EQ(first.state(), State::kPicking);
  Begin(first, 0);
  Run();
  EXPECT_EQ(Up().streams[3].data, "request");
  EXPECT_TRUE(Up().streams[3].end);
  EXPECT_EQ(client.credited, 7u);
  first.Cancel();
  Run();
  EXPECT_EQ(Up().streams[3].reset, 8u);
  EXPECT_EQ(InFlight(0), 0u);
}

TEST_F(AttemptTest, ACancelledWaitForAConnectionIsNeverSent) {
  Start({"10.0.0.1:1"});
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kHang;
  Receiver client;
  ByHand call(worker->context, client, h2::GrpcRequest());
  Attempt first(call), second(call);
  Begin(first, 0);
  Begin(second, 0);
  Run();
  EXPECT_EQ(first.state(), State::kConnecting);
  first.Cancel();
  EXPECT_EQ(InFlight(0), 1u);
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kAccept;
  net.Answer("10.0.0.1:1");
  Run();
  EXPECT_EQ(first.state(), State::kEnded);
  EXPECT_EQ(second.state(), State::kSent);
  EXPECT_EQ(Up().Count(h2::kHeaders), 1u);
}

}  // namespace
}  // namespace sluice::proxy
