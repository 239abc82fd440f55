// EndpointPool with TLS to a server in memory: what the first bytes behind the handshake decide.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http2/hpack/decoder.h"
#include "net/tls/current_context.h"
#include "net/tls/handshake.h"
#include "support/h2_harness.h"
#include "support/manual_worker.h"
#include "support/memory_stream.h"
#include "support/tls_certificates.h"
#include "upstream/endpoint_pool.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;

// Says at once that the other end of a MemoryStream is connected; TLS begins on this one.
class TlsPoolTest : public ::testing::Test, public EndpointPool::Waiter {
 public:
  TlsPoolTest() {
    auto made = net::TlsContext::ForListener({}, {{"a.crt", own.certificate_pem}, {"a.key", own.key_pem}, {}}, nullptr);
    EXPECT_TRUE(made.ok());
    server_context = *made;
    options.tls.enabled = true;
    options.tls.ca = "ca.crt";
    options.tls.server_name = "a.example.com";
    made = net::TlsContext::ForCluster(options.tls, {{}, {}, {"ca.crt", ca.certificate_pem}});
    EXPECT_TRUE(made.ok());
    options.tls_slot = std::make_shared<net::CurrentTlsContext>(registry, "cluster", "c");
    options.tls_slot->Put(*made);
    options.connect_timeout = milliseconds(300);
  }
  base::TimePoint WaitsSince() const override { return time.clock.Now(); }
  std::unique_ptr<net::Attempt> Dial(net::Dialer::OnDone done) {
    auto pair = net::MemoryStream::Make(time.worker, "proxy", "10.0.0.1:1");
    handshake =
        std::make_unique<net::TlsHandshake>(time.worker, std::move(pair.far), server_context, base::kNever,
                                            [this](net::TlsOutcome outcome) { server = std::move(outcome.stream); });
    time.worker.Post([done = std::move(done), near = std::make_shared<std::unique_ptr<net::Stream>>(
                                                  std::move(pair.near))] { done(std::move(*near)); });
    return std::make_unique<net::Attempt>();
  }
  void Call() {
    context.reset(new http2::ConnectionContext{
        time.worker, {}, {}, [this](auto&, auto&, auto, auto done) { return Dial(std::move(done)); }});
    set.emplace(*context);
    endpoint = std::make_shared<Endpoint>("c", "e", *net::Address::Parse("10.0.0.1:1"),
                                          std::make_shared<ClusterOptions>(options), std::make_shared<ClusterLoad>(1),
                                          1, registry);
    ASSERT_TRUE(set->Get(endpoint, endpoint->options(), nullptr)->Wait(*this));
    time.Run();
    ASSERT_NE(server, nullptr);
  }
  void OnConnection(http2::Connection& connection) override {
    log.push_back("connection");
    stream = connection.Open(h2::List(context->interns, h2::GrpcRequest()), true, recorder);
  }
  void OnNoConnection(const base::Error& error) override {
    log.push_back(std::string(base::Reason(error.kind)) + ": " + error.detail);
  }
  void Say(std::string bytes) {
    iovec part{bytes.data(), bytes.size()};
    ASSERT_EQ(server->Write(&part, 1).bytes, bytes.size());
    time.Run();
  }
  // The fields of the first request that the server has heard.
  std::string Heard() {
    uint8_t bytes[16384];
    const net::IoResult result = server->Read(bytes, sizeof(bytes));
    std::string text(reinterpret_cast<char*>(bytes), result.kind == net::IoResult::Kind::kOk ? result.bytes : 0);
    text.erase(0, h2::Preface().size());
    for (const h2::Frame& frame : h2::TakeFrames(text)) {
      if (frame.type != h2::kHeaders) continue;
      http2::InternTable interns;
      http2::HpackDecoder decoder(interns);
      http2::HeaderList list(&interns);
      EXPECT_EQ(decoder.Decode(frame.payload, {}, list), http2::DecodeResult::kOk);
      return h2::Text(list);
    }
    return "";
  }
  void TearDown() override {
    if (stream != nullptr) stream->Release();
    set->CloseAll();
    time.Run();
    server.reset();
    handshake.reset();
    time.runtime.Shutdown();
    set.reset();
  }

  ClusterOptions options;
  test::ManualWorker time;
  metrics::Registry registry{1};
  test::TlsCert ca = test::MakeCert({.common_name = "ca", .authority = true});
  test::TlsCert own = test::MakeCert({.names = "DNS:a.example.com"}, &ca);
  std::shared_ptr<const net::TlsContext> server_context;
  std::unique_ptr<net::TlsHandshake> handshake;
  std::unique_ptr<net::TlsStream> server;
  std::shared_ptr<Endpoint> endpoint;
  std::unique_ptr<http2::ConnectionContext> context;
  std::optional<PoolSet> set;
  std::vector<std::string> log;
  h2::Recorder recorder{1, log};
  http2::Stream* stream = nullptr;
};

TEST_F(TlsPoolTest, RequestsSayHttps) {
  ASSERT_NO_FATAL_FAILURE(Call());
  EXPECT_THAT(log, testing::IsEmpty());
  Say(h2::Settings());
  EXPECT_THAT(log, testing::ElementsAre("connection"));
  EXPECT_THAT(Heard(), testing::HasSubstr(":scheme=https, :path=/pkg.Service/Method"));
}

// A TLS 1.3 server that does not like our certificate says so when the handshake is over for us.
TEST_F(TlsPoolTest, AnEndBehindTheHandshakeCostsNoCall) {
  ASSERT_NO_FATAL_FAILURE(Call());
  server->Close();
  time.Run();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], testing::HasSubstr("connect_failed: endpoint e ended the connection before its SETTINGS"));
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 1u);
}

TEST_F(TlsPoolTest, SilenceBehindTheHandshakeIsAConnectTimeout) {
  ASSERT_NO_FATAL_FAILURE(Call());
  time.clock.Advance(milliseconds(300));
  time.Run();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_THAT(log[0], testing::HasSubstr("connect_timeout: "));
}

}  // namespace
}  // namespace sluice::upstream
