#include "proxy/downstream/tls_accept.h"

#include <gtest/gtest.h>

#include <optional>

#include "net/tls/current_context.h"
#include "proxy/downstream/worker_front.h"
#include "support/tls_pair.h"

namespace sluice::proxy {
namespace {

class TlsAcceptTest : public test::TlsPair {
 public:
  TlsAcceptTest() {
    MakeContexts();
    options.tls.enabled = true;
    options.tls_slot = slot;
    slot->Put(server_context);
    worker.emplace(time.worker, snapshots, metrics);
  }
  ~TlsAcceptTest() override {
    worker->CloseAll();
    time.Run();
    worker.reset();
    time.runtime.Shutdown();
  }
  // A connection has been accepted; its other end.
  std::unique_ptr<net::Stream> Accept() {
    auto pair = net::MemoryStream::Make(time.worker, "proxy", "192.0.2.7:40000");
    under_way->fetch_add(1);
    TlsAccept::Start(*worker, worker->handshakes, std::move(pair.near), options, under_way,
                     [this](std::unique_ptr<net::TlsStream> stream) {
                       ++ended;
                       last = std::move(stream);
                     });
    return std::move(pair.far);
  }
  // Of handshakes that ended with the result; also of one that has no line yet.
  std::string Counted(const std::string& result) {
    const std::string text = registry.RenderPrometheus(metrics::Show::kAlways),
                      name = "result=\"" + result + "\",side=\"listener\"} ";
    const size_t at = text.find(name) + name.size();
    return text.substr(at, text.find('\n', at) - at);
  }

  metrics::Registry registry{1};
  ProxyMetrics metrics{registry};
  SnapshotData snapshots{1};
  std::shared_ptr<net::CurrentTlsContext> slot = std::make_shared<net::CurrentTlsContext>(registry, "listener", "in");
  ListenerOptions options;
  std::optional<WorkerFront> worker;
  std::shared_ptr<std::atomic<int64_t>> under_way = std::make_shared<std::atomic<int64_t>>(0);
  int ended = 0;
  std::unique_ptr<net::TlsStream> last;
};

TEST_F(TlsAcceptTest, AHandshakeEndsInAStreamAndIsNotCountedAnyMore) {
  auto far = Accept();
  EXPECT_EQ(*under_way, 1);
  net::TlsHandshake hand(time.worker, std::move(far), client_context, *net::Address::Parse("10.0.0.1:1"), base::kNever,
                         [this](net::TlsOutcome o) { at_client = std::move(o); });
  time.Run();
  EXPECT_EQ(ended, 1);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(*under_way, 0);
  EXPECT_TRUE(worker->handshakes.empty());
  EXPECT_EQ(Counted("ok"), "1");
}

TEST_F(TlsAcceptTest, ASilentClientIsEndedInTime) {
  auto far = Accept();
  time.clock.Advance(options.tls.handshake_timeout - std::chrono::milliseconds(1));
  time.Run();
  EXPECT_EQ(ended, 0);
  time.clock.Advance(std::chrono::milliseconds(2));
  time.Run();
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(last, nullptr);
  EXPECT_EQ(*under_way, 0);
  EXPECT_EQ(Read(*far), "<end>");
  EXPECT_EQ(Counted("timeout"), "1");
}

TEST_F(TlsAcceptTest, ADrainAndAStopEndThoseUnderWayAndLetNoneBegin) {
  for (bool drain : {true, false}) {
    auto one = Accept(), two = Accept();
    time.Run();
    const int before = ended;
    drain ? worker->DrainDownstream() : worker->CloseAll();
    EXPECT_EQ(ended, before + (drain ? 2 : 0));  // after the drain they ended at once
    EXPECT_EQ(*under_way, 0);
    EXPECT_EQ(Read(*one) + Read(*two), "<end><end>");
  }
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(Counted("closed"), "0");  // no handshake failed
}

// Trap: TLS that is not set up becomes plain text.
TEST_F(TlsAcceptTest, WithoutAContextTheConnectionEnds) {
  slot->Put(nullptr);
  EXPECT_EQ(Read(*Accept()), "<end>");
  options.tls_slot = nullptr;
  EXPECT_EQ(Read(*Accept()), "<end>");
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(*under_way, 0);
}

TEST_F(TlsAcceptTest, ThoseUnderWayKeepTheContextTheyBeganWith) {
  auto far = Accept();
  slot->Put(nullptr);
  net::TlsHandshake hand(time.worker, std::move(far), client_context, *net::Address::Parse("10.0.0.1:1"), base::kNever,
                         [this](net::TlsOutcome o) { at_client = std::move(o); });
  time.Run();
  EXPECT_NE(last, nullptr);
}

}  // namespace
}  // namespace sluice::proxy
