// What a steady-state unary call through the whole proxy costs in heap allocations: exact on any machine.
#include <cstdio>

#include "support/proxy_fixture.h"
#include "unit/http2/allocation_counter.h"

namespace sluice::proxy {
namespace {

using http2::AllocationsForTest;

class CallCostTest : public test::ProxyFixture {
 public:
  // Allocations of the proxy in turning what has been sent to it; what the peers do is not counted. Streams
  // in memory tell of readiness through Worker::Post, which a socket does not: taken off.
  uint64_t Turn(net::MemoryStream& down, net::MemoryStream& up) {
    const uint64_t posts = down.posts() + up.posts(), before = AllocationsForTest();
    time.Run();
    return AllocationsForTest() - before - (down.posts() + up.posts() - posts) * post_cost;
  }
  uint64_t post_cost = 0;
};

TEST_F(CallCostTest, ASteadyUnaryCallAllocatesNoMoreThanThis) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "sanitizers bring their own operator new";
#endif
  Start({"10.0.0.1:1"});
  test::FramePeer& client = Client();
  client.Send(h2::Headers(1, h2::Block(h2::GrpcRequest()), test::kLast));
  Run();
  Respond(Up(), 1, "warm");
  Run();
  net::MemoryStream &down = client.wire(), &up = Up().wire();
  // What one message of a stream's readiness costs: a ready stream that is asked once more.
  {
    const uint64_t before = AllocationsForTest(), posts = down.posts();
    struct : net::IoEvents {
      void OnReadable() override {}
      void OnWritable() override {}
    } ignored;
    down.WaitWritable(ignored);
    post_cost = AllocationsForTest() - before;
    ASSERT_EQ(down.posts() - posts, 1u);
    ASSERT_GT(post_cost, 0u);  // the counter counts
    time.Run();
  }
  const std::string body(100, 'b');
  uint64_t least = UINT64_MAX, most = 0;
  for (uint32_t id = 3; id < 2003; id += 2) {
    client.Send(h2::Headers(id, h2::Block(h2::GrpcRequest())) + h2::Data(id, body, h2::kEndStream));
    // The peers' sends above may have posted already; those are paid for outside of Turn.
    uint64_t cost = Turn(down, up);
    Up().Pump();
    Respond(Up(), id, body);
    cost += Turn(down, up);
    Run();
    ASSERT_TRUE(client.streams[id].end);
    ASSERT_EQ(client.streams[id].data, body);
    if (id < 203) continue;  // warming up
    least = std::min(least, cost);
    most = std::max(most, cost);
  }
  std::printf("heap allocations of a unary call: %llu to %llu\n", static_cast<unsigned long long>(least),
              static_cast<unsigned long long>(most));
  RecordProperty("allocations", static_cast<int>(most));
  // Nothing at all: frames, streams, calls, header lists and blocks come from free lists, fields from tables.
  EXPECT_EQ(most, 0u);
}

}  // namespace
}  // namespace sluice::proxy
