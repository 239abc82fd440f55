// DialTls and CurrentTlsContext over real sockets: one deadline for connection and handshake, errors with their reason,
// counts by result.
#include "net/tls/dialer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>

#include "net/acceptor.h"
#include "net/socket_stream.h"
#include "support/captured_log.h"
#include "support/socket_worker.h"
#include "support/tls_certificates.h"

namespace sluice::net {
namespace {

using test::MakeCert;
using test::TlsCert;
using ::testing::HasSubstr;

class TlsDialerTest : public ::testing::Test {
 public:
  TlsDialerTest() {
    cluster.ca = "ca.crt";
    TlsContents ours{{"a.crt", own.certificate_pem}, {"a.key", own.key_pem}, {}};
    auto made = TlsContext::ForListener({}, ours, std::make_shared<TlsTicketKeys>());
    EXPECT_TRUE(made.ok());
    server_context = *made;
    Trust(ca);
    auto socket = ListenSocket::Open(*Address::Parse("127.0.0.1:0"), {});
    EXPECT_TRUE(socket.ok());
    address = socket->address();
    acceptor.emplace(time.worker, std::move(*socket), [this](int fd, std::string peer) {
      auto stream = MakeSocketStream(time.worker, fd, std::move(peer));
      if (silent) return held.push_back(std::move(stream));
      handshakes.push_back(std::make_unique<TlsHandshake>(time.worker, std::move(stream), server_context, base::kNever,
                                                          [this](TlsOutcome o) { at_server = std::move(o); }));
    });
  }
  void Trust(const TlsCert& authority) {
    auto made = TlsContext::ForCluster(cluster, {{}, {}, {"ca.crt", authority.certificate_pem}});
    ASSERT_TRUE(made.ok()) << made.error().detail;
    slot->Put(*made);
  }
  void Start(std::chrono::milliseconds timeout = std::chrono::seconds(5)) {
    result.reset();
    attempt = DialTls(Dial, time.worker, address, time.worker.now() + timeout, slot,
                      [this](auto r) { result.emplace(std::move(r)); });
  }
  void DialAndWait() {
    Start();
    time.RunUntil([&] { return result.has_value(); });
  }
  bool Counted(const std::string& reason, int count) {
    return registry.RenderPrometheus().find("result=\"" + reason + "\",side=\"cluster\"} " + std::to_string(count) +
                                            "\n") != std::string::npos;
  }

  test::SocketWorker time;
  metrics::Registry registry{1};
  TlsCert ca = MakeCert({.common_name = "ca", .authority = true});
  TlsCert other = MakeCert({.common_name = "other", .authority = true});
  TlsCert own = MakeCert({.common_name = "s", .names = "IP:127.0.0.1"}, &ca);
  ClusterTlsOptions cluster;
  std::shared_ptr<CurrentTlsContext> slot = std::make_shared<CurrentTlsContext>(registry, "cluster", "users");
  std::shared_ptr<const TlsContext> server_context;
  Address address;
  bool silent = false;
  std::vector<std::unique_ptr<Stream>> held;
  std::vector<std::unique_ptr<TlsHandshake>> handshakes;
  TlsOutcome at_server;
  std::optional<base::Result<std::unique_ptr<Stream>>> result;
  std::unique_ptr<Attempt> attempt;
  std::optional<Acceptor> acceptor;
};

TEST_F(TlsDialerTest, AConnectionCarriesBytesAndTheNextOneResumes) {
  for (bool resumed : {false, true}) {
    at_server = TlsOutcome();
    DialAndWait();
    ASSERT_TRUE(result->ok()) << result->error().detail;
    time.RunUntil([&] { return at_server.stream != nullptr; });
    EXPECT_EQ(at_server.stream->peer().resumed, resumed);
    iovec part{const_cast<char*>("hello"), 5};
    EXPECT_EQ((**result)->Write(&part, 1).bytes, 5u);
    uint8_t buffer[64 * 1024];
    IoResult read;
    time.RunUntil(
        [&] { return (read = at_server.stream->Read(buffer, sizeof(buffer))).kind != IoResult::Kind::kWouldBlock; });
    EXPECT_EQ(std::string(reinterpret_cast<char*>(buffer), read.bytes), "hello");
    // Tickets come behind the handshake, with the first read.
    at_server.stream->Write(&part, 1);
    time.RunUntil([&] { return (**result)->Read(buffer, sizeof(buffer)).kind == IoResult::Kind::kOk; });
  }
  EXPECT_TRUE(Counted("ok", 2)) << registry.RenderPrometheus();
}

TEST_F(TlsDialerTest, AFailedHandshakeIsAFailedConnectionThatSaysWhy) {
  Trust(other);
  DialAndWait();
  ASSERT_FALSE(result->ok());
  EXPECT_EQ(result->error().kind, base::ErrorKind::kConnectFailed);
  EXPECT_THAT(result->error().detail, HasSubstr("TLS with " + address.ToString() + ": the peer's certificate: "));
  EXPECT_TRUE(Counted("certificate", 1)) << registry.RenderPrometheus();
  EXPECT_TRUE(Counted("ok", 0));
}

// Trap: a connection at once and a second deadline behind it.
TEST_F(TlsDialerTest, TheDeadlineIsOneForConnectionAndHandshake) {
  silent = true;
  Start(std::chrono::seconds(3));
  time.RunUntil([&] { return held.size() == 1; });
  time.clock.Advance(std::chrono::seconds(2));
  time.Run();
  EXPECT_FALSE(result.has_value());
  time.clock.Advance(std::chrono::seconds(1));
  time.RunUntil([&] { return result.has_value(); });
  ASSERT_FALSE(result->ok());
  EXPECT_EQ(result->error().kind, base::ErrorKind::kConnectTimeout);
  EXPECT_TRUE(Counted("timeout", 1));
}

TEST_F(TlsDialerTest, ARefusedConnectionIsToldAsItIsAndNoHandshakeCounted) {
  acceptor.reset();
  time.Run();
  DialAndWait();
  ASSERT_FALSE(result->ok());
  EXPECT_THAT(result->error().detail, HasSubstr("Connection refused"));
  EXPECT_FALSE(Counted("closed", 1));
}

TEST_F(TlsDialerTest, WithoutAContextThereIsNoConnection) {
  slot = std::make_shared<CurrentTlsContext>(registry, "cluster", "empty");
  DialAndWait();
  EXPECT_FALSE(result->ok());
  slot = nullptr;
  DialAndWait();
  EXPECT_FALSE(result->ok());
}

TEST_F(TlsDialerTest, ItMayBeCancelledAtAnyMoment) {
  Start();
  attempt.reset();  // before the connection
  time.Run();
  silent = true;
  Start();
  time.RunUntil([&] { return held.size() == 1; });
  time.Run();
  attempt.reset();  // during the handshake
  time.Run();
  EXPECT_FALSE(result.has_value());
  uint8_t byte;
  while (held[0]->Read(&byte, 1).kind == IoResult::Kind::kOk) {  // the hello; then the end
  }
}

TEST(CurrentTlsContext, FailuresAreLoggedTenTimesASecondAndAllCounted) {
  test::CapturedLog log;
  metrics::Registry registry(1);
  CurrentTlsContext slot(registry, "listener", "in");
  const base::TimePoint start{std::chrono::seconds(5)};
  const auto fail = [&](base::TimePoint now) { slot.Ended(0, now, TlsFailure::kAlert, "10.0.0.1:5", "why"); };
  for (int i = 0; i < 13; ++i) fail(start);
  const std::string first = log.Take();
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 10) << first;
  fail(start + std::chrono::seconds(1));
  EXPECT_EQ(log.Take(), "warning listener in: TLS handshake with 10.0.0.1:5 failed: " +
                            std::string(ToString(TlsFailure::kAlert)) + ": why (and 3 lines of this kind before it)\n");
  EXPECT_NE(registry.RenderPrometheus().find("name=\"in\",result=\"" + std::string(ToString(TlsFailure::kAlert)) +
                                             "\",side=\"listener\"} 14"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::net
